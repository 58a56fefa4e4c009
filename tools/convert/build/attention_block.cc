#include "tools/convert/build/attention_block.h"

#include <vector>

#include "tools/convert/build/layers.h"

namespace tarn::convert {

using format::Slice;

Slice AttentionBlockOps::Convolve(Slice qkv) const {
  if (block_.conv_taps == 0) return qkv;
  const std::string prefix = "model." + name_ + ".";
  const std::vector<ConvColumns> parts = {{prefix + "q_conv", heads_.heads() * heads_.head_dim()},
                                          {prefix + "k_conv", heads_.kv_heads() * heads_.head_dim()},
                                          {prefix + "v_conv", heads_.kv_heads() * heads_.value_dim()}};
  const Convolution convolution = {block_.conv_taps, block_.conv_bias, block_.conv_silu};
  return AddCausalConv(&builder_, name_ + ".conv", prefix + "qkv_conv", parts, convolution, qkv);
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
    const uint32_t group = block_.output_norm == OutputNorm::kHead ? heads_.value_dim() : 0;
    o = AddNorm(&builder_, norm, "model." + norm, format::NormKind::RmsNorm, block_.output_norm_eps, o, group);
  }
  if (!block_.output_gate) return o;
  const std::string gate = name_ + ".o_gate";
  const Slice logits = ops_.Dense(gate + "_proj", "model." + gate + "_proj", o.width(), /*bias=*/false, x);
  return AddGated(&builder_, gate, format::ActivationKind::Silu, logits, o);
}

}  // namespace tarn::convert
