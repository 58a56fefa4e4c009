// CausalConv: every column convolved with its own taps over the last tokens, by one or several sets of taps; the state holds the
// rows that the next tokens need.
#include "runtime/ops/registry.h"
#include "variants/limits.h"

namespace tarn {
namespace {

class CausalConvOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    silu_ = context.op().attributes_as_CausalConv()->silu();
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors_least=*/1, /*tensors_most=*/2, /*states=*/1));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    const uint32_t all = context.output_width(0);
    width_ = context.input_width(0);
    mixes_ = width_ == 0 || width_ > all ? 1 : all / width_;
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", all % mixes_ == 0 ? all / mixes_ : all));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", all));
    taps_ = context.tensor(0).shape.dims[0];
    if (taps_ < kMinConvTaps || taps_ > kMaxConvTaps) {
      return Error(TARN_BAD_FORMAT, "weight has %u taps, %u to %u expected", taps_, kMinConvTaps, kMaxConvTaps);
    }
    TARN_ASSIGN_OR_RETURN(weight_, context.ExpectTensor(0, "weight", {taps_, all}));
    if (context.tensor_count() == 2) {
      TARN_ASSIGN_OR_RETURN(bias_, context.ExpectTensor(1, "bias", {all}));
    }
    context.AddWork({context.limits().MaxRows({format::Time::Tokens, 0}), all, taps_});
    return context.ExpectState(0, "rows", {taps_ - 1, width_});
  }

  Status Run(const RunContext& context) override {
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      const size_t first = sequence * context.tokens;
      context.kernels->causal_conv({context.tokens, width_, mixes_, taps_, x.f32() + first * x.stride, x.stride, weight_, bias_,
                                    silu_, context.states[0].f32(context.number(sequence)), y.f32() + first * y.stride, y.stride});
    }
    return Ok();
  }

 private:
  bool silu_;
  uint32_t width_, mixes_;
  uint32_t taps_;
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  Format(text, text_bytes, "%s", op.attributes_as_CausalConv()->silu() ? "silu" : "no activation");
}

}  // namespace

const OpKind kCausalConvOp = MakeOpKind<CausalConvOp>("causal_conv", Describe);

}  // namespace tarn
