// DiagonalRecurrence: every column is a recurrence of its own, whose decay follows from a logit of the token.
#include <iterator>

#include "kernels/denormals.h"
#include "runtime/ops/registry.h"
#include "variants/recurrence.h"

namespace tarn {
namespace {

class DiagonalRecurrenceOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(ReadAttributes(*context.op().attributes_as_DiagonalRecurrence()));
    const RecurrenceDecayInfo& info = InfoOf(decay_);
    TARN_RETURN_IF_ERROR(
        context.Expect(/*inputs=*/2, /*outputs=*/1, /*tensors_least=*/info.required ? 1 : 0, /*tensors_most=*/1, /*states=*/1));
    TARN_RETURN_IF_ERROR(context.ExpectStage(Stage::kDecode));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    TARN_RETURN_IF_ERROR(context.ExpectInput(1, "gate", width_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "h", width_));
    if (context.tensor_count() == 1) {
      TARN_ASSIGN_OR_RETURN(constant_, context.ExpectTensor(0, info.tensor, {width_}));
    }
    constexpr uint64_t kWorkOfElement = 16;  // two exponentials, and what is made of them
    context.AddWork({context.limits().MaxRows({format::Time::Tokens, 0}), width_, kWorkOfElement});
    return context.ExpectState(0, "h", {width_});
  }

  Status Run(const RunContext& context) override {
    const FlushDenormals flush;
    const Operand &x = context.inputs[0], &gate = context.inputs[1], &y = context.outputs[0];
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      const size_t row = sequence * context.tokens;
      RecurrenceArgs args{};
      args.decay = decay_;
      args.input = input_;
      args.tokens = context.tokens;
      args.width = width_;
      args.x = x.f32() + row * x.stride;
      args.x_stride = x.stride;
      args.gate = gate.f32() + row * gate.stride;
      args.gate_stride = gate.stride;
      args.constant = constant_;
      args.first = context.tokens_seen(sequence) == 0;
      args.state = context.states[0].f32(context.number(sequence));
      args.y = y.f32() + row * y.stride;
      args.y_stride = y.stride;
      context.kernels->diagonal_recurrence(args);
    }
    return Ok();
  }

 private:
  Status ReadAttributes(const format::DiagonalRecurrence& attributes) {
    if (attributes.decay() >= std::size(kRecurrenceDecays)) {
      return Error(TARN_BAD_FORMAT, "unknown decay %u", static_cast<unsigned>(attributes.decay()));
    }
    if (attributes.input() >= std::size(kRecurrenceInputs)) {
      return Error(TARN_BAD_FORMAT, "unknown input %u", static_cast<unsigned>(attributes.input()));
    }
    decay_ = static_cast<RecurrenceDecay>(attributes.decay());
    input_ = static_cast<RecurrenceInput>(attributes.input());
    return Ok();
  }

  RecurrenceDecay decay_;
  RecurrenceInput input_;
  uint32_t width_;
  const float* constant_ = nullptr;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::DiagonalRecurrence& attributes = *op.attributes_as_DiagonalRecurrence();
  if (attributes.decay() >= std::size(kRecurrenceDecays) || attributes.input() >= std::size(kRecurrenceInputs)) return;
  Format(text, text_bytes, "decay %s, input %s", kRecurrenceDecays[attributes.decay()].name,
         kRecurrenceInputs[attributes.input()].name);
}

}  // namespace

const OpKind kDiagonalRecurrenceOp = MakeOpKind<DiagonalRecurrenceOp>("diagonal_recurrence", Describe);

}  // namespace tarn
