// Layers whose projections read mixes of a token and the one before it, and values that are mixed with those of the first layer
// (MATH 2.1).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/build/attention_block.h"
#include "tools/convert/build/layers.h"
#include "tools/convert/build/stack.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

using format::Slice;

Slice Stack::AttendShifted(const Mixer& mixer, const AttentionOp& op, Slice x) {
  const std::string &name = mixer.name, prefix = "model." + name + ".";
  const AttentionLayer& shape = mixer.shape;
  if (!op.reads_qk || op.composed || op.drawn || c_.has_rope) {
    Fail(name, ": token_shift: it is not supported with rope, nor with ", op.system);
  }
  const bool gated = shape.block.output_gate != OutputGate::kNone;
  std::vector<std::string> mixes = {prefix + "q_shift", prefix + "k_shift", prefix + "v_shift"};
  for (const LogitInput& logit : op.logits) {
    if (logit.shared) Fail(name, ": token_shift: it is not supported with control_sharing = \"model\"");
    if (logit.rows != LogitRows::kLayer) continue;
    const std::string mix = prefix + std::string(1, logit.projection[0]) + "_shift";
    if (std::find(mixes.begin(), mixes.end(), mix) != mixes.end()) {
      Fail(name, ": token_shift: it is not supported with ", logit.projection);
    }
    mixes.push_back(mix);
  }
  if (gated) mixes.push_back(prefix + "o_gate_shift");
  const Slice shifted = AddTokenShift(&b_, name + ".shift", prefix + "shifts", mixes, x);
  const auto rows = [&](size_t mix) { return Columns(shifted, static_cast<uint32_t>(mix) * x.width(), x.width()); };
  const auto project = [&](size_t mix, const std::string& projection, uint32_t width, bool bias) {
    return ops_.Dense(name + "." + projection, prefix + projection, width, bias, rows(mix));
  };
  const AttentionBlockOps block(ops_, shape, name);
  const Slice q = block.ActivateQ(block.ActivateQk(project(0, "q_proj", shape.q_width(), shape.bias.q)));
  const Slice k = block.ActivateQk(project(1, "k_proj", shape.k_width(), shape.bias.k));
  const Slice v = WithFirstValues(mixer, rows(2), block.ActivateV(project(2, "v_proj", shape.v_width(), shape.bias.v)));
  std::vector<Slice> logits;
  size_t mix = 3;
  for (const LogitInput& logit : op.logits) {
    const Slice mixed = logit.rows == LogitRows::kLayer ? rows(mix++) : x;
    logits.push_back(ProjectLogits(name + "." + logit.projection, prefix + logit.projection, logit, {mixed, k, v}));
  }
  return AttendWith(mixer, op, q, k, v, logits, gated ? rows(mixes.size() - 1) : x);
}

Slice Stack::WithFirstValues(const Mixer& mixer, Slice rows, Slice v) {
  const AttentionBlock& block = mixer.shape.block;
  if (!block.value_residual) return v;
  if (!first_values_) {
    first_values_ = v;
    return v;
  }
  const std::string& name = mixer.name;
  if (first_values_->width() != v.width()) {
    Fail(name, ": value_residual: v has ", v.width(), " columns, ", first_values_->width(), " expected as in the first layer");
  }
  const LogitInput logit{
      "value_logit", "v_gate_proj", v.width(), /*bias=*/true, false, false, Init::kLinear, Init::kZero, block.value_residual_rank};
  const Slice logits = ProjectLogits(name + ".v_gate_proj", "model." + name + ".v_gate_proj", logit, {rows, {}, {}});
  return AddBlend(&b_, name + ".v_blend", *first_values_, logits, v);
}

}  // namespace tarn::convert
