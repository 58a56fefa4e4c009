#include "runtime/ops/attention/cache/cache_policy.h"

#include <cassert>

namespace tarn {
namespace {

bool RoundsOwnRows(const CacheConfig& config) { return config.adds_own_rows && config.stores[0].dtype != DType::kF32; }

uint64_t WidestRow(const Heads& heads) { return heads.key_dim() > heads.value_dim() ? heads.key_dim() : heads.value_dim(); }

}  // namespace

Status CacheConfig::ReadStores(const PrepareContext& context) {
  for (const CacheRows& rows : variant.info().rows) {
    if (rows.rows == nullptr) break;
    const uint64_t count = rows.rows(variant.attributes);
    if (count == 0) continue;
    TARN_ASSIGN_OR_RETURN(stores[store_count], RowStates::Read(context, variant.heads, state_count(), count, rows.f32));
    if (!rows.f32 && stores[store_count].dtype != stores[0].dtype) return Error(TARN_BAD_FORMAT, "rows of several dtypes");
    ++store_count;
  }
  return Ok();
}

uint32_t CacheConfig::state_count() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < store_count; ++i) count += stores[i].count();
  return count;
}

CacheTask::Pieces CacheTask::Lay(const CacheConfig& config, Scratch* scratch, uint64_t tokens) {
  const Heads& heads = config.variant.heads;
  Pieces pieces{};
  pieces.blocks = scratch->Take<CacheBlock>(config.max_blocks);
  pieces.attend = scratch->Take(CacheScratch(tokens, heads.group(), heads.key_dim(), heads.value_dim()));
  pieces.policy = scratch->TakeParts(1, config.scratch_bytes);
  if (RoundsOwnRows(config)) {
    pieces.keys = scratch->Take(tokens * heads.key_dim());
    pieces.values = scratch->Take(tokens * heads.value_dim());
    pieces.row = scratch->Take(WidestRow(heads));
  }
  return pieces;
}

uint64_t CacheTask::CountScratch(const CacheConfig& config, uint64_t max_chunk) {
  return tarn::CountScratch([&](Scratch* scratch) { Lay(config, scratch, max_chunk); });
}

CacheTask::CacheTask(const CacheConfig& config, const RunContext& context, size_t sequence, size_t kv_head, Scratch scratch)
    : config_(config), context_(context), sequence_(sequence), kv_head_(kv_head), pieces_(Lay(config, &scratch, context.tokens)) {
  const HeadSlices at(context, config.variant.heads, sequence, kv_head);
  tokens_ = {context.tokens, context.tokens_seen(sequence), at.q, at.q_stride, at.k, at.k_stride, at.v, at.v_stride, at.o,
             at.o_stride};
  if (RoundsOwnRows(config)) RoundOwnRows();
}

// A token sees its own row, and those of its chunk, as they will be stored, so that chunks and steps agree.
void CacheTask::RoundOwnRows() {
  const RowStore kept = store(0);
  const size_t d = heads().key_dim(), dv = heads().value_dim();
  for (size_t t = 0; t < tokens_.count; ++t) {
    kept.RoundTrip(tokens_.k + t * tokens_.k_stride, tokens_.v + t * tokens_.v_stride, pieces_.keys + t * d,
                   pieces_.values + t * dv, pieces_.row);
  }
  tokens_.k = pieces_.keys;
  tokens_.k_stride = d;
  tokens_.v = pieces_.values;
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
  return RowStore(context_, heads(), config_.stores[index], context_.number(sequence_), kv_head_);
}

void CacheTask::Add(CacheBlock block, int64_t from, int64_t until, int64_t step) {
  if (block.rows == 0) return;
  assert(block_count_ < config_.max_blocks);
  if (block_count_ == config_.max_blocks) return;
  block.from = from;
  block.until = until;
  block.step = step;
  pieces_.blocks[block_count_++] = block;
}

void CacheTask::AddRing(const RowStore& ring, int64_t low, int64_t high, int64_t from, int64_t until, int64_t step) {
  const int64_t rows = static_cast<int64_t>(ring.rows());
  while (low < high) {
    const int64_t row = (low % rows + rows) % rows;
    const int64_t count = high - low < rows - row ? high - low : rows - row;
    CacheBlock block = ring.Block(static_cast<uint64_t>(row), static_cast<uint64_t>(count));
    block.position = low - static_cast<int64_t>(tokens_.seen);
    Add(block, from, until, step);
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
  block.position = static_cast<int64_t>(first);
  Add(block, from, until, step);
}

void CacheTask::Attend(const CacheTokens& tokens) {
  const CacheVariant& variant = config_.variant;
  const DistanceBias bias = variant.BiasOf(kv_head_);
  context_.kernels->cache_attend({tokens.count, heads().group(), heads().key_dim(), heads().value_dim(), tokens.q, tokens.q_stride,
                                  pieces_.blocks, block_count_, attributes().scale, tokens.o, tokens.o_stride, pieces_.attend,
                                  attributes().soft_cap, variant.has_bias() ? &bias : nullptr});
  block_count_ = 0;
}

}  // namespace tarn
