#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<format::CacheAttention> Attributes(FlatBufferBuilder* builder, const CacheAttention& cache, const format::Heads& heads,
                                          const std::string& system) {
  const auto name = builder->CreateString(system);
  const auto positions = cache.positions.empty() ? 0 : builder->CreateVector(cache.positions);
  return format::CreateCacheAttention(*builder, &heads, cache.capacity, cache.scale, cache.policy, cache.window, cache.dilation,
                                      cache.stride, cache.num_strided, positions, cache.mask_empty, cache.segment_len,
                                      cache.mem_len, cache.cmem_len, cache.compression_ratio, cache.factor, cache.null_kv, name,
                                      cache.pool_kernel, cache.pool_stride);
}

AttentionOp MakeCausal(const CacheAttention& cache, const format::Heads& heads, const std::string& system,
                       const std::vector<CacheRows>& rows) {
  AttentionOp op;
  op.type = format::OpAttributes::CacheAttention;
  op.attributes = [=](FlatBufferBuilder& builder) { return Attributes(&builder, cache, heads, system).Union(); };
  for (const CacheRows& pair : rows) {
    AddWaitingRows(heads, pair, &op);
    const auto last = static_cast<uint32_t>(op.states.size() - 1);
    op.scales.push_back({last, {std::string(pair.prefix) + "scales", {heads.kv_heads(), 2, pair.rows}}});
  }
  op.num_sized_states = static_cast<uint32_t>(op.states.size());
  op.state_kind = StateKind::kRows;
  return op;
}

// Whole sequences leave no state, sources their rows.
AttentionOp MakeNoncausal(const CacheAttention& cache, const AttentionContext& context, const std::string& system) {
  AttentionOp op;
  const format::Heads heads = context.heads;
  const auto part = [=](format::NoncausalPart which) -> AttributeWriter {
    return [=](FlatBufferBuilder& builder) {
      const auto rows = Attributes(&builder, cache, heads, system);
      return format::CreateNoncausalCache(builder, which, rows).Union();
    };
  };
  SetNoncausalOp(context.form, format::OpAttributes::NoncausalCache, part, &op);
  if (context.form == AttentionForm::kNoncausal) return op;
  op.states.push_back(SourceState("K", {heads.kv_heads(), 1, heads.head_dim()}, 1));
  op.states.push_back(SourceState("V", {heads.kv_heads(), 1, heads.value_dim()}, 1));
  op.num_sized_states = 2;
  op.scales = {{1, SourceState("scales", {heads.kv_heads(), 2, 1}, 2)}};
  return op;
}

}  // namespace

AttentionOp MakeCacheAttention(const CacheAttention& cache, const AttentionContext& context, const std::string& system,
                               const std::vector<CacheRows>& rows) {
  return context.form == AttentionForm::kCausal ? MakeCausal(cache, context.heads, system, rows)
                                                : MakeNoncausal(cache, context, system);
}

void AddWaitingRows(const format::Heads& heads, CacheRows rows, AttentionOp* op) {
  op->states.push_back({std::string(rows.prefix) + "K", {heads.kv_heads(), rows.rows, heads.head_dim()}});
  op->states.push_back({std::string(rows.prefix) + "V", {heads.kv_heads(), rows.rows, heads.value_dim()}});
}

}  // namespace tarn::convert
