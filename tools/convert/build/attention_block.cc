#include "tools/convert/build/attention_block.h"

#include <vector>

#include "tools/convert/build/layers.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

using format::Slice;

namespace {

format::ActivationKind KindOf(OutputGate gate) {
  switch (gate) {
    case OutputGate::kSilu:
      return format::ActivationKind::Silu;
    case OutputGate::kGelu:
      return format::ActivationKind::Gelu;
    case OutputGate::kGeluTanh:
      return format::ActivationKind::GeluTanh;
    case OutputGate::kLinear:
      return format::ActivationKind::Linear;
    case OutputGate::kNone:
    case OutputGate::kSigmoid:
      break;
  }
  return format::ActivationKind::Sigmoid;
}

}  // namespace

Slice AttentionBlockOps::Convolve(Slice columns, const AttentionOp& op) const {
  if (block_.conv_taps == 0) return columns;
  const std::string prefix = "model." + name_ + ".";
  std::vector<ConvColumns> parts = {{prefix + "v_conv", layer_.v_width()}};
  std::string fused = "v";
  if (op.reads_qk) {
    parts.insert(parts.begin(), {{prefix + "q_conv", layer_.q_width()}, {prefix + "k_conv", layer_.k_width()}});
    fused = "qkv";
  }
  for (const LogitInput& logit : op.logits) {
    if (!block_.conv_logits) break;
    if (!logit.with_qkv) Fail(name_, ": conv_logits: ", op.system, " has logits that are projected apart from q, k and v");
    fused += logit.projection[0];
    parts.push_back({prefix + logit.projection[0] + "_conv", logit.width});
  }
  const Convolution convolution = {block_.conv_taps, block_.conv_bias, block_.conv_silu};
  return AddCausalConv(&builder_, name_ + ".conv", prefix + fused + "_conv", parts, convolution, columns);
}

Slice AttentionBlockOps::Activate(const char* part, ElementFunction function, Slice x) const {
  if (function == ElementFunction::kNone) return x;
  const auto kind = function == ElementFunction::kRelu ? format::ActivationKind::Relu : format::ActivationKind::Silu;
  return AddActivation(&builder_, name_ + "." + part, kind, x);
}

Slice AttentionBlockOps::Finish(const Attended& attended) const {
  Slice o = Activate("o_act", block_.output_activation, attended.o);
  o = Skip(attended, OutputSkip::kHead, o);
  if (block_.output_gate_first) return Norm(Gate(o, attended.x));
  return Gate(Skip(attended, OutputSkip::kProducts, Norm(o)), attended.x);
}

Slice AttentionBlockOps::Skip(const Attended& attended, OutputSkip kind, Slice o) const {
  if (block_.output_skip != kind) return o;
  const std::string name = name_ + ".skip";
  if (kind == OutputSkip::kHead) return AddSkip(&builder_, name, "model." + name, layer_.heads, o, attended.v);
  return AddProductSkip(&builder_, name, "model." + name, layer_.heads, o, attended.v, attended.q, attended.k);
}

Slice AttentionBlockOps::Norm(Slice o) const {
  if (block_.output_norm == OutputNorm::kNone) return o;
  const std::string norm = name_ + ".o_norm";
  if (block_.output_norm == OutputNorm::kGroups) {
    return AddGroupNorm(&builder_, norm, "model." + norm, format::NormKind::LayerNorm, block_.output_norm_eps, o,
                        layer_.heads.value_dim());
  }
  if (block_.output_norm_groups > 1) {
    return AddGroupNorm(&builder_, norm, "model." + norm, format::NormKind::RmsNorm, block_.output_norm_eps, o,
                        o.width() / block_.output_norm_groups);
  }
  const uint32_t group = block_.output_norm == OutputNorm::kHead ? layer_.heads.value_dim() : 0;
  return AddNorm(&builder_, norm, "model." + norm, format::NormKind::RmsNorm, block_.output_norm_eps, o, group);
}

Slice AttentionBlockOps::Gate(Slice o, Slice x) const {
  if (block_.output_gate == OutputGate::kNone) return o;
  const std::string gate = name_ + ".o_gate";
  return AddGated(&builder_, gate, KindOf(block_.output_gate), GateLogits(gate + "_proj", o.width(), x), o);
}

Slice AttentionBlockOps::GateLogits(const std::string& name, uint32_t width, Slice x) const {
  const std::string tensor = "model." + name;
  if (block_.output_gate_rank == 0) return ops_.Dense(name, tensor, width, block_.output_gate_bias, x);
  Slice narrow = ops_.Dense(name + ".0", tensor + ".0", block_.output_gate_rank, /*bias=*/false, x);
  if (block_.output_gate_hidden_sigmoid) narrow = AddActivation(&builder_, name + ".act", format::ActivationKind::Sigmoid, narrow);
  return ops_.Dense(name + ".1", tensor + ".1", width, block_.output_gate_bias, narrow);
}

}  // namespace tarn::convert
