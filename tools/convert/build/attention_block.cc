#include "tools/convert/build/attention_block.h"

#include <vector>

#include "tools/convert/build/layers.h"

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
    case OutputGate::kNone:
    case OutputGate::kSigmoid:
      break;
  }
  return format::ActivationKind::Sigmoid;
}

}  // namespace

Slice AttentionBlockOps::Convolve(Slice qkv, bool has_qk) const {
  if (block_.conv_taps == 0) return qkv;
  const std::string prefix = "model." + name_ + ".";
  std::vector<ConvColumns> parts = {{prefix + "v_conv", layer_.v_width()}};
  if (has_qk) {
    parts.insert(parts.begin(), {{prefix + "q_conv", layer_.q_width()}, {prefix + "k_conv", layer_.k_width()}});
  }
  const Convolution convolution = {block_.conv_taps, block_.conv_bias, block_.conv_silu};
  return AddCausalConv(&builder_, name_ + ".conv", prefix + (has_qk ? "qkv_conv" : "v_conv"), parts, convolution, qkv);
}

Slice AttentionBlockOps::Activate(const char* part, ElementFunction function, Slice x) const {
  if (function == ElementFunction::kNone) return x;
  const auto kind = function == ElementFunction::kRelu ? format::ActivationKind::Relu : format::ActivationKind::Silu;
  return AddActivation(&builder_, name_ + "." + part, kind, x);
}

Slice AttentionBlockOps::Finish(Slice o, Slice x) const {
  o = Activate("o_act", block_.output_activation, o);
  if (block_.output_norm != OutputNorm::kNone) {
    const std::string norm = name_ + ".o_norm";
    const uint32_t group = block_.output_norm == OutputNorm::kHead ? layer_.heads.value_dim() : 0;
    o = AddNorm(&builder_, norm, "model." + norm, format::NormKind::RmsNorm, block_.output_norm_eps, o, group);
  }
  if (block_.output_gate == OutputGate::kNone) return o;
  const std::string gate = name_ + ".o_gate";
  return AddGated(&builder_, gate, KindOf(block_.output_gate), GateLogits(gate + "_proj", o.width(), x), o);
}

Slice AttentionBlockOps::GateLogits(const std::string& name, uint32_t width, Slice x) const {
  const std::string tensor = "model." + name;
  if (block_.output_gate_rank == 0) return ops_.Dense(name, tensor, width, block_.output_gate_bias, x);
  const Slice narrow = ops_.Dense(name + ".0", tensor + ".0", block_.output_gate_rank, /*bias=*/false, x);
  return ops_.Dense(name + ".1", tensor + ".1", width, block_.output_gate_bias, narrow);
}

}  // namespace tarn::convert
