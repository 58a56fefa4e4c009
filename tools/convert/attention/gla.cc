// Gated linear attention: linear state of the keys themselves, whose rows decay by a gate each.
#include <cmath>
#include <limits>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

// Of the logarithm of a decay: null, or a number up to 0.
float ParseClampMin(Fields* fields) {
  const Json* value = fields->Find("gate_clamp_min");
  if (value == nullptr || value->is_null()) return -std::numeric_limits<float>::infinity();
  const float least = fields->Number("gate_clamp_min");
  if (least > 0) fields->FailAt("gate_clamp_min", ValueText(*value) + " is above 0: rows would grow");
  return least;
}

}  // namespace

AttentionOp ParseGla(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "vector");
  FixUndivided(fields);
  LinearAttributes state;
  state.gate = Gate::kVector;
  state.gate_normalizer = fields->PositiveNumber("gate_normalizer", 16.0f);
  state.gate_min = ParseClampMin(fields);
  state.scale = fields->Number("scale", DefaultScale(context.heads));
  AttentionOp op = MakeLinearState(state, context, "gla");
  // A gate of 0 decays by exp(-ln 2 / normalizer).
  const bool lasting = state.gate_min > -kHalfRounding || std::log(2.0f) / state.gate_normalizer < kHalfRounding;
  if (lasting) op.state_kind = StateKind::kLasting;
  return op;
}

}  // namespace tarn::convert
