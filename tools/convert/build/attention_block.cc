#include "tools/convert/build/attention_block.h"

#include <utility>
#include <vector>

#include "tools/convert/build/layers.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

// Rows of taps, one after the other for each column, become a row of columns for each tap.
Fold Transposed(uint32_t taps) {
  return [taps](const std::vector<std::vector<float>>& parts) {
    std::vector<float> columns;
    for (const std::vector<float>& part : parts) columns.insert(columns.end(), part.begin(), part.end());
    const size_t width = columns.size() / taps;
    std::vector<float> out(columns.size());
    for (size_t i = 0; i < width; ++i) {
      for (size_t j = 0; j < taps; ++j) out[j * width + i] = columns[i * taps + j];
    }
    return out;
  };
}

}  // namespace

Slice AttentionBlockOps::Convolve(Slice qkv) const {
  const uint32_t taps = block_.conv_taps;
  if (taps == 0) return qkv;
  const std::string prefix = "model." + name_ + ".";
  std::vector<WeightSpec> weights, biases;
  const std::pair<const char*, uint32_t> parts[] = {{"q_conv", heads_.heads() * heads_.head_dim()},
                                                    {"k_conv", heads_.kv_heads() * heads_.head_dim()},
                                                    {"v_conv", heads_.kv_heads() * heads_.value_dim()}};
  for (const auto& [part, width] : parts) {
    weights.push_back({prefix + part + ".weight", {width, taps}, Init::kLinear});
    biases.push_back({prefix + part + ".bias", {width}, Init::kZero});
  }
  const uint32_t width = qkv.width();
  std::vector<uint32_t> tensors = {
      builder_.AddConstant(prefix + "qkv_conv.weight", {taps, width}, std::move(weights), Transposed(taps))};
  if (block_.conv_bias) tensors.push_back(builder_.AddConstant(prefix + "qkv_conv.bias", {width}, std::move(biases)));

  builder_.Need("causal_conv");
  const std::string name = name_ + ".conv";
  const Slice output = builder_.AddValue(name, width);
  const auto attributes = [silu = block_.conv_silu](FlatBufferBuilder& buffer) {
    return format::CreateCausalConv(buffer, silu).Union();
  };
  const uint32_t state = builder_.AddState({name + ".rows", {taps - 1, width}});
  builder_.AddOp({name, format::OpAttributes::CausalConv, attributes, {qkv}, {output.value()}, std::move(tensors), {state}});
  return output;
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
