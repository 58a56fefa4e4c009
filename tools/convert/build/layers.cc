#include "tools/convert/build/layers.h"

namespace tarn::convert {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

Slice AddSum(GraphBuilder* builder, const std::string& name, Slice a, Slice b) {
  return builder->AddOp(name, format::OpAttributes::Add, NoAttributes(format::CreateAdd), {a, b}, a.width());
}

Slice AddActivation(GraphBuilder* builder, const std::string& name, format::ActivationKind kind, Slice x, float cap) {
  if (kind > format::ActivationKind::Tanh) builder->Need("activations");
  const auto attributes = [kind, cap](FlatBufferBuilder& buffer) { return format::CreateActivation(buffer, kind, cap).Union(); };
  return builder->AddOp(name, format::OpAttributes::Activation, attributes, {x}, x.width());
}

Slice AddGated(GraphBuilder* builder, const std::string& name, format::ActivationKind kind, Slice gate, Slice up) {
  if (kind != format::ActivationKind::Silu) builder->Need("activations");
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
