// Pool: one row of a whole source: its first row, the mean of its rows, or the largest element of every column.
#include <cstring>

#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class PoolOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    kind_ = context.op().attributes_as_Pool()->kind();
    if (kind_ > format::PoolKind::MAX) return Error(TARN_BAD_FORMAT, "unknown kind of pool %u", static_cast<unsigned>(kind_));
    TARN_RETURN_IF_ERROR(context.ExpectStage(Stage::kEncode));
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    if (!(context.output_axis(0) == Axis{format::Time::Fixed, 1})) {
      return Error(TARN_BAD_FORMAT, "writes one row, its value has others");
    }
    axis_ = context.input_axis(0);
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    return context.ExpectOutput(0, "y", width_);
  }

  Status Run(const RunContext& context) override {
    const Operand& x = context.inputs[0];
    const size_t rows = context.sequence_rows(axis_);
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      const float* row = x.f32() + sequence * rows * x.stride;
      float* y = context.outputs[0].f32() + sequence * context.outputs[0].stride;
      std::memcpy(y, row, width_ * sizeof(float));
      if (kind_ == format::PoolKind::First) continue;
      for (size_t i = 1; i < rows; ++i) {
        row += x.stride;
        Join(*context.kernels, row, y);
      }
      if (kind_ == format::PoolKind::Mean) context.kernels->scale_f32(width_, y, 1.0f / static_cast<float>(rows), y);
    }
    return Ok();
  }

 private:
  void Join(const Kernels& kernels, const float* row, float* y) const {
    if (kind_ == format::PoolKind::Mean) {
      kernels.add(1, width_, y, width_, row, width_, y, width_);
      return;
    }
    for (uint32_t i = 0; i < width_; ++i) y[i] = row[i] > y[i] || row[i] != row[i] ? row[i] : y[i];
  }

  format::PoolKind kind_;
  Axis axis_;
  uint32_t width_;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  Format(text, text_bytes, "%s", format::EnumNamePoolKind(op.attributes_as_Pool()->kind()));
}

}  // namespace

const OpKind kPoolOp = MakeOpKind<PoolOp>("pool", Describe);

}  // namespace tarn
