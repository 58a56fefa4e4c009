// Activation: an elementwise function.

#include "runtime/ops/pointwise/rows.h"
#include "runtime/ops/registry.h"
#include "variants/attribute.h"

namespace tarn {
namespace {

class ActivationOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    kind_ = context.op().attributes_as_Activation()->kind();
    if (kind_ >= format::ActivationKind::Linear) {
      return Error(TARN_BAD_FORMAT, "unknown activation %u", static_cast<unsigned>(kind_));
    }
    cap_ = context.op().attributes_as_Activation()->cap();
    if (kind_ == format::ActivationKind::SoftCap && !IsWithin(Bounds::kPositive, cap_)) {
      return Error(TARN_BAD_FORMAT, "cap is %g, a number > 0 expected", static_cast<double>(cap_));
    }
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    return context.ExpectOutput(0, "y", width_);
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    ForRows(context, context.rows(axis_), width_, [&](size_t first, size_t count) { RunRows(context, first, count); });
    return Ok();
  }

 private:
  void RunRows(const RunContext& context, size_t first, size_t count) const {
    const Kernels& kernels = *context.kernels;
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    if (kind_ == format::ActivationKind::SoftCap) {
      kernels.soft_cap(count, width_, x.row(first), x.stride, cap_, y.row(first), y.stride);
    } else if (kind_ == format::ActivationKind::Sigmoid) {
      for (size_t row = first; row < first + count; ++row) kernels.scaled_sigmoid(width_, x.row(row), 1, 1, y.row(row));
    } else {
      const auto function = Function(kernels);
      function(count, width_, x.row(first), x.stride, y.row(first), y.stride);
    }
  }

  decltype(Kernels::relu) Function(const Kernels& kernels) const {
    switch (kind_) {
      case format::ActivationKind::Relu:
        return kernels.relu;
      case format::ActivationKind::Gelu:
        return kernels.gelu;
      case format::ActivationKind::GeluTanh:
        return kernels.gelu_tanh;
      case format::ActivationKind::Tanh:
        return kernels.tanh;
      case format::ActivationKind::Silu:
        return kernels.silu;
      case format::ActivationKind::ReluSquared:
        return kernels.relu_squared;
      case format::ActivationKind::SoftCap:  // they have a parameter
      case format::ActivationKind::Sigmoid:
      case format::ActivationKind::Linear:  // refused
        break;
    }
    return kernels.relu;
  }

  Axis axis_;
  format::ActivationKind kind_;
  float cap_;
  uint32_t width_;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::Activation& activation = *op.attributes_as_Activation();
  const char* name = format::EnumNameActivationKind(activation.kind());
  if (activation.kind() == format::ActivationKind::SoftCap) {
    Format(text, text_bytes, "%s %g", name, static_cast<double>(activation.cap()));
  } else {
    Format(text, text_bytes, "%s", name);
  }
}

}  // namespace

const OpKind kActivationOp = MakeOpKind<ActivationOp>("activation", Describe);

}  // namespace tarn
