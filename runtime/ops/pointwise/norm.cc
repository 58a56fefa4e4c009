// Norm: layer norm (weight and bias) or RMS norm (weight), of the whole width or of groups of columns, which share a weight or have
// their own.

#include "runtime/ops/pointwise/rows.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class NormOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::Norm& attributes = *context.op().attributes_as_Norm();
    if (attributes.kind() > format::NormKind::MAX) {
      return Error(TARN_BAD_FORMAT, "unknown norm %u", static_cast<unsigned>(attributes.kind()));
    }
    is_rms_ = attributes.kind() == format::NormKind::RmsNorm;
    eps_ = attributes.eps();
    if (!(eps_ >= 0)) return Error(TARN_BAD_FORMAT, "eps is %g, a number >= 0 expected", static_cast<double>(eps_));
    const uint32_t tensors = is_rms_ ? 1 : 2;
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, tensors, tensors, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", width_));
    own_weights_ = attributes.group() != 0;
    group_ = own_weights_ ? attributes.group() : GroupOf(context.tensor(0).shape);
    if (width_ % group_ != 0) return Error(TARN_BAD_FORMAT, "group is %u, a divisor of %u expected", group_, width_);
    const uint32_t columns = own_weights_ ? width_ : group_;
    TARN_ASSIGN_OR_RETURN(weight_, context.ExpectTensor(0, "weight", {columns}));
    if (!is_rms_) {
      TARN_ASSIGN_OR_RETURN(bias_, context.ExpectTensor(1, "bias", {columns}));
    }
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    ForRows(context, context.rows(axis_), width_, [&](size_t first, size_t count) { RunRows(context, first, count); });
    return Ok();
  }

 private:
  void RunRows(const RunContext& context, size_t first_row, size_t count) const {
    const Kernels& kernels = *context.kernels;
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    if (own_weights_ || group_ == width_) {
      for (size_t first = 0; first < width_; first += group_) {
        NormRows(kernels, count, first, x.row(first_row) + first, x.stride, y.row(first_row) + first, y.stride);
      }
      return;
    }
    for (size_t row = first_row; row < first_row + count; ++row) {
      NormRows(kernels, width_ / group_, 0, x.row(row), group_, y.row(row), group_);
    }
  }

  // The columns that `weight` has; all of them where it does not divide them, which is then an error.
  uint32_t GroupOf(const Shape& weight) const {
    const uint64_t columns = weight.rank == 1 ? weight.dims[0] : 0;
    return columns != 0 && width_ % columns == 0 ? static_cast<uint32_t>(columns) : width_;
  }

  // `first`: of the weights.
  void NormRows(const Kernels& kernels, size_t rows, size_t first, const float* x, size_t x_stride, float* y,
                size_t y_stride) const {
    if (is_rms_) {
      kernels.rms_norm(rows, group_, x, x_stride, weight_ + first, eps_, y, y_stride);
    } else {
      kernels.layer_norm(rows, group_, x, x_stride, weight_ + first, bias_ + first, eps_, y, y_stride);
    }
  }

  Axis axis_;
  bool is_rms_;
  bool own_weights_;        // of every column; else groups share theirs
  uint32_t width_, group_;  // columns that are normed together: all, or each group
  float eps_;
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::Norm& norm = *op.attributes_as_Norm();
  Format(text, text_bytes, "%s, eps %g", format::EnumNameNormKind(norm.kind()), static_cast<double>(norm.eps()));
}

}  // namespace

const OpKind kNormOp = MakeOpKind<NormOp>("norm", Describe);

}  // namespace tarn
