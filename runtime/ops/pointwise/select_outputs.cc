// SelectOutputs: the rows whose logits are wanted: the last ones of every sequence's chunk, of a source those that the caller
// names. What comes after it runs on those only.
#include <cstring>

#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class SelectOutputsOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    if (context.input_axis(0).time != format::Time::Tokens || context.output_axis(0).time != format::Time::Outputs) {
      return Error(TARN_BAD_FORMAT, "goes from a row per token to a row per output");
    }
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    return context.ExpectOutput(0, "y", width_);
  }

  Status Run(const RunContext& context) override {
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    const size_t skipped = context.tokens - context.output_rows;
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      for (size_t row = 0; row < context.output_rows; ++row) {
        const size_t token = context.output_tokens == nullptr ? skipped + row : context.output_tokens[row];
        const float* from = x.f32() + (sequence * context.tokens + token) * x.stride;
        std::memcpy(y.f32() + (sequence * context.output_rows + row) * y.stride, from, width_ * sizeof(float));
      }
    }
    return Ok();
  }

 private:
  uint32_t width_;
};

}  // namespace

const OpKind kSelectOutputsOp = MakeOpKind<SelectOutputsOp>("select_outputs");

}  // namespace tarn
