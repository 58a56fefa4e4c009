// Blend: two rows mixed element by element, y = x + c (1 - sigmoid(logits)) (z - x).
#include "runtime/ops/pointwise/rows.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class BlendOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const flatbuffers::Vector<const format::Slice*>* inputs = context.op().inputs();
    has_z_ = inputs != nullptr && inputs->size() > 2;
    TARN_RETURN_IF_ERROR(context.Expect(has_z_ ? 3 : 2, /*outputs=*/1, /*tensors_least=*/0, /*tensors_most=*/1, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    TARN_RETURN_IF_ERROR(context.ExpectInput(1, "logits", width_));
    if (has_z_) TARN_RETURN_IF_ERROR(context.ExpectInput(2, "z", width_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", width_));
    if (context.tensor_count() == 1) {
      TARN_ASSIGN_OR_RETURN(weight_, context.ExpectTensor(0, "c", {width_}));
    }
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const Operand &x = context.inputs[0], &logits = context.inputs[1], &y = context.outputs[0];
    const Operand z = has_z_ ? context.inputs[2] : Operand{};
    ForRows(context, context.rows(axis_), width_, [&](size_t first, size_t count) {
      context.kernels->blend({count, width_, x.row(first), x.stride, logits.row(first), logits.stride,
                              has_z_ ? z.row(first) : nullptr, z.stride, weight_, y.row(first), y.stride});
    });
    return Ok();
  }

 private:
  Axis axis_;
  bool has_z_;
  uint32_t width_;
  const float* weight_ = nullptr;
};

}  // namespace

const OpKind kBlendOp = MakeOpKind<BlendOp>("blend");

}  // namespace tarn
