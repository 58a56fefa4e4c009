#include "runtime/ops/attention/cache/cache_policy.h"

namespace tarn {
namespace {

uint64_t BlockFloats(const CacheConfig& config) {
  return ScratchFloats::Padded((config.max_blocks * sizeof(CacheBlock) + sizeof(float) - 1) / sizeof(float));
}

uint64_t AttendFloats(const CacheConfig& config, uint64_t tokens) {
  return CacheScratch(tokens, config.heads.group(), config.heads.key_dim(), config.heads.value_dim());
}

bool RoundsOwnRows(const CacheConfig& config) { return config.adds_own_rows && config.stores[0].dtype != DType::kF32; }

uint64_t WidestRow(const Heads& heads) { return heads.key_dim() > heads.value_dim() ? heads.key_dim() : heads.value_dim(); }

}  // namespace

Status CacheConfig::AddStore(const PrepareContext& context, uint64_t rows, bool f32_only) {
  TARN_ASSIGN_OR_RETURN(stores[store_count], RowStates::Read(context, heads, state_count(), rows, f32_only));
  ++store_count;
  return Ok();
}

uint32_t CacheConfig::state_count() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < store_count; ++i) count += stores[i].count();
  return count;
}

uint64_t CacheTask::ScratchFloatsFor(const CacheConfig& config, uint64_t max_tokens) {
  uint64_t floats =
      BlockFloats(config) + ScratchFloats::Padded(AttendFloats(config, max_tokens)) + ScratchFloats::Padded(config.scratch_floats);
  if (RoundsOwnRows(config)) {
    floats += ScratchFloats::Padded(max_tokens * config.heads.key_dim()) +
              ScratchFloats::Padded(max_tokens * config.heads.value_dim()) + ScratchFloats::Padded(WidestRow(config.heads));
  }
  return floats;
}

CacheTask::CacheTask(const CacheConfig& config, const RunContext& context, size_t sequence, size_t kv_head, float* scratch)
    : config_(config), context_(context), sequence_(sequence), kv_head_(kv_head) {
  ScratchFloats pieces(scratch);
  blocks_ = reinterpret_cast<CacheBlock*>(pieces.Take(BlockFloats(config)));
  attend_scratch_ = pieces.Take(AttendFloats(config, context.tokens));
  policy_scratch_ = pieces.Take(config.scratch_floats);
  const HeadSlices at(context, config.heads, sequence, kv_head);
  tokens_ = {context.tokens, context.tokens_seen, at.q, at.q_stride, at.k, at.k_stride, at.v, at.v_stride, at.o, at.o_stride};

  if (!RoundsOwnRows(config)) return;
  const RowStore kept = store(0);
  // A token sees its own row, and those of its chunk, as they will be stored, so that chunks and steps agree.
  const size_t d = config.heads.key_dim();
  const size_t dv = config.heads.value_dim();
  float* k = pieces.Take(context.tokens * d);
  float* v = pieces.Take(context.tokens * dv);
  float* work = pieces.Take(WidestRow(config.heads));
  for (size_t t = 0; t < context.tokens; ++t) {
    kept.RoundTrip(at.k + t * at.k_stride, at.v + t * at.v_stride, k + t * d, v + t * dv, work);
  }
  tokens_.k = k;
  tokens_.k_stride = d;
  tokens_.v = v;
  tokens_.v_stride = dv;
}

CacheTokens CacheTokens::Every(size_t step, size_t first, size_t new_count) const {
  return {new_count,
          seen,
          q + first * q_stride,
          q_stride * step,
          k + first * k_stride,
          k_stride * step,
          v + first * v_stride,
          v_stride * step,
          o + first * o_stride,
          o_stride * step};
}

RowStore CacheTask::store(uint32_t index) const {
  return RowStore(context_, config_.heads, config_.stores[index], sequence_, kv_head_);
}

void CacheTask::Add(CacheBlock block, int64_t from, int64_t until, int64_t step) {
  if (block.rows == 0) return;
  block.from = from;
  block.until = until;
  block.step = step;
  blocks_[block_count_++] = block;
}

void CacheTask::AddRing(const RowStore& ring, int64_t low, int64_t high, int64_t from, int64_t until, int64_t step) {
  const int64_t rows = static_cast<int64_t>(ring.rows());
  while (low < high) {
    const int64_t row = (low % rows + rows) % rows;
    const int64_t count = high - low < rows - row ? high - low : rows - row;
    Add(ring.Block(static_cast<uint64_t>(row), static_cast<uint64_t>(count)), from, until, step);
    low += count;
    from += count * step;
    until += count * step;
  }
}

void CacheTask::AddOwn(const CacheTokens& tokens, size_t first, size_t count, size_t every, int64_t from, int64_t until,
                       int64_t step) {
  CacheBlock block{};
  block.rows = count;
  block.type = RowType::kF32;
  block.keys = tokens.k + first * tokens.k_stride;
  block.key_stride = tokens.k_stride * every;
  block.values = tokens.v + first * tokens.v_stride;
  block.value_stride = tokens.v_stride * every;
  Add(block, from, until, step);
}

void CacheTask::Attend(const CacheTokens& tokens) {
  context_.kernels->cache_attend({tokens.count, config_.heads.group(), config_.heads.key_dim(), config_.heads.value_dim(), tokens.q,
                                  tokens.q_stride, blocks_, block_count_, attributes().scale(), tokens.o, tokens.o_stride,
                                  attend_scratch_});
  block_count_ = 0;
}

Status ExpectAscending(const flatbuffers::Vector<uint32_t>* positions) {
  constexpr uint32_t kMost = 1u << 16;
  const uint32_t count = positions == nullptr ? 0 : positions->size();
  if (count < 1 || count > kMost) return Error(TARN_BAD_FORMAT, "positions: %u found, 1 to %u wanted", count, kMost);
  for (uint32_t i = 1; i < count; ++i) {
    if (positions->Get(i) <= positions->Get(i - 1)) return Error(TARN_BAD_FORMAT, "positions are not ascending at %u", i);
  }
  return Ok();
}

}  // namespace tarn
