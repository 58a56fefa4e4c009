#include "tools/convert/cache_attention.h"

namespace tarn::convert {

AttentionOp MakeCacheAttention(const CacheAttention& cache, const format::Heads& heads, const std::string& system,
                               const std::vector<CacheRows>& rows) {
  AttentionOp op;
  op.type = format::OpAttributes::CacheAttention;
  op.attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
    const auto name = builder.CreateString(system);
    const auto positions = cache.positions.empty() ? 0 : builder.CreateVector(cache.positions);
    return format::CreateCacheAttention(builder, &heads, cache.capacity, cache.scale, cache.policy, cache.window, cache.dilation,
                                        cache.stride, cache.num_strided, positions, cache.mask_empty, cache.segment_len,
                                        cache.mem_len, cache.cmem_len, cache.compression_ratio, cache.factor, cache.null_kv, name)
        .Union();
  };
  for (const CacheRows& pair : rows) AddWaitingRows(heads, pair, &op);
  op.num_sized_states = static_cast<uint32_t>(op.states.size());
  op.state_kind = StateKind::kRows;
  return op;
}

void AddWaitingRows(const format::Heads& heads, CacheRows rows, AttentionOp* op) {
  op->states.push_back({std::string(rows.prefix) + "K", {heads.kv_heads(), rows.rows, heads.head_dim()}});
  op->states.push_back({std::string(rows.prefix) + "V", {heads.kv_heads(), rows.rows, heads.value_dim()}});
}

}  // namespace tarn::convert
