// AddLearnedPosition: y = x + table[position]. Past the table's end there is nothing to add: the number of tokens is bounded.

#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class AddLearnedPositionOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/1, 1, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", width_));
    const uint64_t positions = context.tensor(0).shape.dims[0];
    TARN_ASSIGN_OR_RETURN(table_, context.ExpectTensor(0, "table", {positions, width_}));
    if (context.first_position() >= positions) {
      return Error(TARN_BAD_FORMAT, "first_position %llu lies past the table's %llu rows",
                   static_cast<unsigned long long>(context.first_position()), static_cast<unsigned long long>(positions));
    }
    context.BoundTokens(positions - context.first_position());
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      const size_t row = sequence * context.tokens;
      const float* const table = table_ + context.position(sequence, 0) * width_;
      context.kernels->add(context.tokens, width_, x.f32() + row * x.stride, x.stride, table, width_, y.f32() + row * y.stride,
                           y.stride);
    }
    return Ok();
  }

 private:
  uint32_t width_;
  const float* table_ = nullptr;
};

}  // namespace

const OpKind kAddLearnedPositionOp = MakeOpKind<AddLearnedPositionOp>("add_learned_position");

}  // namespace tarn
