#include "tools/convert/build/layers.h"

#include <utility>

#include "tools/convert/attention/recurrence.h"

namespace tarn::convert {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

namespace {

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

Slice AddSum(GraphBuilder* builder, const std::string& name, Slice a, Slice b) {
  return builder->AddOp(name, format::OpAttributes::Add, NoAttributes(format::CreateAdd), {a, b}, a.width());
}

Slice AddActivation(GraphBuilder* builder, const std::string& name, format::ActivationKind kind, Slice x, float cap) {
  if (kind > format::ActivationKind::Tanh) builder->Need("activations");
  const auto attributes = [kind, cap](FlatBufferBuilder& buffer) { return format::CreateActivation(buffer, kind, cap).Union(); };
  return builder->AddOp(name, format::OpAttributes::Activation, attributes, {x}, x.width());
}

Slice AddGated(GraphBuilder* builder, const std::string& name, format::ActivationKind kind, Slice gate, Slice up) {
  if (kind == format::ActivationKind::Linear) {
    builder->Need("products");
  } else if (kind != format::ActivationKind::Silu) {
    builder->Need("activations");
  }
  const auto attributes = [kind](FlatBufferBuilder& buffer) { return format::CreateSiluMul(buffer, kind).Union(); };
  return builder->AddOp(name, format::OpAttributes::SiluMul, attributes, {gate, up}, gate.width());
}

Slice AddNorm(GraphBuilder* builder, const std::string& name, const std::string& tensor, format::NormKind kind, float eps, Slice x,
              uint32_t group) {
  const uint32_t width = group == 0 ? x.width() : group;
  if (width != x.width()) builder->Need("grouped_norm");
  const auto attributes = [kind, eps](FlatBufferBuilder& buffer) { return format::CreateNorm(buffer, kind, eps).Union(); };
  return builder->AddOp(name, format::OpAttributes::Norm, attributes, {x}, x.width(), builder->AddNormTensors(tensor, kind, width));
}

Slice AddGroupNorm(GraphBuilder* builder, const std::string& name, const std::string& tensor, format::NormKind kind, float eps,
                   Slice x, uint32_t group) {
  builder->Need("token_mix");
  const auto attributes = [kind, eps, group](FlatBufferBuilder& buffer) {
    return format::CreateNorm(buffer, kind, eps, group).Union();
  };
  return builder->AddOp(name, format::OpAttributes::Norm, attributes, {x}, x.width(),
                        builder->AddNormTensors(tensor, kind, x.width()));
}

Slice AddCausalConv(GraphBuilder* builder, const std::string& name, const std::string& tensor,
                    const std::vector<ConvColumns>& parts, const Convolution& convolution, Slice x) {
  const uint32_t taps = convolution.taps, width = x.width();
  std::vector<WeightSpec> weights, biases;
  for (const ConvColumns& part : parts) {
    weights.push_back({part.name + ".weight", {part.width, taps}, Init::kLinear});
    biases.push_back({part.name + ".bias", {part.width}, Init::kZero});
  }
  std::vector<uint32_t> tensors = {builder->AddConstant(tensor + ".weight", {taps, width}, std::move(weights), Transposed(taps))};
  if (convolution.bias) tensors.push_back(builder->AddConstant(tensor + ".bias", {width}, std::move(biases)));
  builder->Need("causal_conv");
  const Slice output = builder->AddValue(name, width);
  const auto attributes = [silu = convolution.silu](FlatBufferBuilder& buffer) {
    return format::CreateCausalConv(buffer, silu).Union();
  };
  const uint32_t state = builder->AddState({name + ".rows", {taps - 1, width}});
  builder->AddOp({name, format::OpAttributes::CausalConv, attributes, {x}, {output.value()}, std::move(tensors), {state}});
  return output;
}

Slice AddTokenShift(GraphBuilder* builder, const std::string& name, const std::string& tensor,
                    const std::vector<std::string>& tensors, Slice x) {
  const uint32_t width = x.width(), all = width * static_cast<uint32_t>(tensors.size());
  std::vector<WeightSpec> specs;
  for (const std::string& mix : tensors) specs.push_back({mix, {width}, Init::kZero});
  const auto fold = [](const std::vector<std::vector<float>>& parts) {
    std::vector<float> taps;
    for (const std::vector<float>& mix : parts) taps.insert(taps.end(), mix.begin(), mix.end());
    const size_t count = taps.size();
    for (size_t i = 0; i < count; ++i) taps.push_back(1 - taps[i]);
    return taps;
  };
  builder->Need("causal_conv");
  if (tensors.size() > 1) builder->Need("token_mix");
  const uint32_t weight = builder->AddConstant(tensor, {2, all}, std::move(specs), fold);
  const Slice output = builder->AddValue(name, all);
  const auto attributes = [](FlatBufferBuilder& buffer) { return format::CreateCausalConv(buffer).Union(); };
  const uint32_t state = builder->AddState({name + ".rows", {1, width}});
  builder->AddOp({name, format::OpAttributes::CausalConv, attributes, {x}, {output.value()}, {weight}, {state}});
  return output;
}

Slice AddBlend(GraphBuilder* builder, const std::string& name, Slice x, Slice logits, Slice z) {
  builder->Need("token_mix");
  return builder->AddOp(name, format::OpAttributes::Blend, NoAttributes(format::CreateBlend), {x, logits, z}, x.width());
}

Slice AddDamping(GraphBuilder* builder, const std::string& name, const std::string& tensor, Slice x, Slice logits) {
  builder->Need("token_mix");
  return builder->AddOp(name, format::OpAttributes::Blend, NoAttributes(format::CreateBlend), {x, logits}, x.width(),
                        {builder->AddConstant(tensor, {x.width()}, {{tensor, {x.width()}, Init::kOne}})});
}

Slice AddSkip(GraphBuilder* builder, const std::string& name, const std::string& tensor, const format::Heads& heads, Slice o,
              Slice v) {
  builder->Need("skip");
  const uint32_t count = heads.heads();
  const auto attributes = [count](FlatBufferBuilder& buffer) { return format::CreateSkip(buffer, count).Union(); };
  return builder->AddOp(name, format::OpAttributes::Skip, attributes, {o, v}, o.width(),
                        {builder->AddConstant(tensor, {count}, {{tensor, {count}, Init::kOne}})});
}

Slice AddProductSkip(GraphBuilder* builder, const std::string& name, const std::string& tensor, const format::Heads& heads, Slice o,
                     Slice v, Slice q, Slice k) {
  builder->Need("skip");
  const uint32_t count = heads.heads();
  const std::vector<uint32_t> shape = {count, heads.head_dim()};
  const auto attributes = [count](FlatBufferBuilder& buffer) { return format::CreateSkip(buffer, count, true).Union(); };
  return builder->AddOp(name, format::OpAttributes::Skip, attributes, {o, v, q, k}, o.width(),
                        {builder->AddConstant(tensor, shape, {{tensor, shape, Init::kLinear}})});
}

Slice AddHeadLogits(GraphBuilder* builder, const std::string& name, const std::string& tensor, const LogitInput& logit, Slice x) {
  const uint32_t heads = logit.heads, rows = logit.width / heads, columns = x.width() / heads;
  const auto repeated = [heads](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out;
    for (uint32_t head = 0; head < heads; ++head) out.insert(out.end(), parts[0].begin(), parts[0].end());
    return out;
  };
  const uint32_t weight = builder->AddConstant(tensor + ".weight", {heads, rows, columns},
                                               {{tensor + ".weight", {rows, columns}, logit.weight_init}}, repeated);
  builder->Need(kRecurrenceFeature);
  return builder->AddOp(name, format::OpAttributes::BlockDense, NoAttributes(format::CreateBlockDense), {x}, logit.width, {weight});
}

Slice AddRows(GraphBuilder* builder, const std::string& name, const std::string& tensor, uint32_t rows, uint32_t width) {
  const uint32_t index = builder->AddConstant(tensor, {rows, width}, {{tensor, {rows, width}, Init::kLinear}});
  const Slice output = builder->AddValue(name, width, format::Time::Fixed, format::DType::F32, rows);
  builder->AddOp({name, format::OpAttributes::Constant, NoAttributes(format::CreateConstant), {}, {output.value()}, {index}, {}});
  return output;
}

Slice AddNoncausalAttention(GraphBuilder* builder, const std::string& name, const std::string& system, const format::Heads& heads,
                            const CacheAttention& cache, Slice q, Slice k, Slice v) {
  const AttentionContext context{heads, 0, q.width(), true, false, AttentionForm::kNoncausal};
  return builder->AddAttention(name, "", MakeCacheAttention(cache, context, system), heads, {q, k, v});
}

}  // namespace tarn::convert
