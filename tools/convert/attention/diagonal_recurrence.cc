// Diagonal recurrences: every column of v has a state of one number, which decays by a gate of the layer input. No q and k.
#include <cmath>

#include "tools/convert/attention/recurrence.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

AttributeWriter RecurrenceAttributes(RecurrenceDecay decay, RecurrenceInput input) {
  return [decay, input](flatbuffers::FlatBufferBuilder& builder) {
    return format::CreateDiagonalRecurrence(builder, static_cast<uint8_t>(decay), static_cast<uint8_t>(input)).Union();
  };
}

std::vector<WeightSpec> RateParts(const std::string& prefix, uint32_t width) {
  return {{prefix + "rate_logit", {width}, Init::kZero}};
}

Fold RateFold(float scale) {
  return [scale](const std::vector<std::vector<float>>& parts) {
    std::vector<float> rates;
    for (const float logit : parts[0]) {
      const double x = logit, softplus = std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
      rates.push_back(static_cast<float>(scale * softplus));
      if (!std::isfinite(rates.back())) Fail("rate_logit: ", logit, " found, a number whose rate is finite expected");
    }
    return rates;
  };
}

GraphState RecurrenceState(uint32_t width) { return {"h", {width}}; }

AttentionOp ParseDiagonalRecurrence(Fields* fields, const AttentionContext& context) {
  const uint32_t width = context.heads.kv_heads() * context.heads.value_dim();
  if (context.heads.kv_heads() != context.heads.heads()) {
    fields->FailAt("system", "\"diagonal_recurrence\" has no queries that share heads: num_kv_heads must be num_heads");
  }
  const auto decay = fields->OneOfList<RecurrenceDecay>("decay", kRecurrenceDecays, RecurrenceDecay::kSigmoid);
  const auto input = fields->OneOfList<RecurrenceInput>("input", kRecurrenceInputs, RecurrenceInput::kComplement);
  AttentionOp op;
  op.reads_qk = false;
  op.type = format::OpAttributes::DiagonalRecurrence;
  op.attributes = RecurrenceAttributes(decay, input);
  op.logits.push_back(
      {"gate", "g_proj", width, fields->Bool("gate_bias", false), /*with_qkv=*/true, /*shared=*/false, Init::kLinear, Init::kZero});
  if (decay == RecurrenceDecay::kExponential) {
    const float scale = fields->PositiveNumber("rate_scale", 8.0f);
    op.tensors.push_back({"rate", {width}, RateParts("", width), RateFold(scale)});
  } else if (decay == RecurrenceDecay::kSigmoid && fields->Bool("lower_bounds", false)) {
    op.tensors.push_back(LowerBounds("floor", {width}, context));
  } else if (fields->Bool("gate_floor", false)) {
    const auto check = [](const std::vector<std::vector<float>>& parts) {
      for (const float floor : parts[0]) {
        if (!(floor >= 0 && floor <= 1)) Fail("floor: ", floor, " found, 0 to 1 expected");
      }
      return parts[0];
    };
    op.tensors.push_back({"floor", {width}, {{"floor", {width}, Init::kZero}}, check});
  }
  op.states.push_back(RecurrenceState(width));
  op.state_kind = StateKind::kLasting;
  op.features.push_back(kRecurrenceFeature);
  return op;
}

}  // namespace tarn::convert
