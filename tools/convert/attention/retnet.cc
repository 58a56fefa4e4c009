// RetNet's retention: linear state of the keys themselves, which decays by a constant of the head.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

std::vector<float> ParseDecay(Fields* fields, uint32_t heads) {
  std::vector<float> decay(heads);
  const Json* list = fields->Find("decay", "a list of num_heads numbers above 0, at most 1", "1 - 2^(-5 - h) for head h");
  if (list == nullptr) {
    for (uint32_t h = 0; h < heads; ++h) decay[h] = static_cast<float>(1 - std::ldexp(1.0, -5 - static_cast<int>(h)));
    return decay;
  }
  if (!list->is_array() || list->size() != heads) {
    fields->FailAt("decay", ValueText(*list) + " is not a list of num_heads = " + std::to_string(heads) + " numbers");
  }
  for (uint32_t h = 0; h < heads; ++h) {
    const Json& value = (*list)[h];
    if (!value.is_number()) fields->FailAt("decay", ValueText(value) + " is not a number");
    decay[h] = value.get<float>();
    if (!(decay[h] > 0 && decay[h] <= 1)) fields->FailAt("decay", ValueText(value) + " is not above 0 and at most 1");
  }
  return decay;
}

}  // namespace

AttentionOp ParseRetNet(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  if (heads.kv_heads() != heads.heads()) {
    fields->FailAt("system", "\"retnet\" has a decay per head, and so a state: num_kv_heads = " + std::to_string(heads.kv_heads()) +
                                 " must be num_heads = " + std::to_string(heads.heads()));
  }
  FixFeatures(fields, "identity", heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "constant");
  FixUndivided(fields);
  const std::vector<float> decay = ParseDecay(fields, heads.heads());
  LinearAttributes state;
  state.gate = Gate::kConstant;
  state.scale = fields->Number("scale", DefaultScale(heads));

  AttentionOp op = MakeLinearState(state, context, "retnet");
  if (*std::max_element(decay.begin(), decay.end()) > 1 - kHalfRounding) op.state_kind = StateKind::kLasting;
  op.tensors.push_back({"decay", {heads.kv_heads()}, {}, [decay](const std::vector<std::vector<float>>&) { return decay; }});
  return op;
}

}  // namespace tarn::convert
