// Memory-compressed attention in its streaming form (Liu et al. 2018; MATH 1.9.3): every `factor` tokens one convolution makes a
// row of their keys and one of their values; a row is seen from its last token on, and the newest incomplete block not at all. A
// learned row may be visible to all.
#include <cstring>

#include "runtime/ops/attention/cache/cache_policy.h"

namespace tarn {
namespace {

enum Store : uint32_t { kBlocks = 0, kWaiting = 1 };

struct Pieces {
  float* tokens;  // [2, factor, d] keys, then values, of the block that is not complete
  float* row;     // [2, d] key and value of a complete one
};

Pieces Lay(const MemoryCompression& compression, Scratch* scratch) {
  const uint64_t factor = compression.factor, d = compression.dim;
  Pieces pieces;
  pieces.tokens = scratch->Take(2 * factor * d);
  pieces.row = scratch->Take(2 * d);
  return pieces;
}

void Prepare(CacheConfig* config) {
  config->compression = MemoryCompression::Of(config->variant);
  config->adds_own_rows = false;
  config->max_blocks = 3;  // the learned row, old blocks, and those that this chunk completes
  config->scratch_bytes = CountScratch([&](Scratch* scratch) { Lay(config->compression, scratch); });
}

// Makes the `factor` rows of x row `index`.
void CompleteBlock(const CacheTask& task, uint64_t index, const Pieces& pieces) {
  const MemoryCompression& compression = task.config().compression;
  const size_t d = compression.dim;
  compression.Convolve(*task.context().kernels, task.kv_head(), 1, pieces.tokens, pieces.row);
  compression.Convolve(*task.context().kernels, task.kv_head(), 1, pieces.tokens + compression.factor * d, pieces.row + d);
  task.store(kBlocks).Store(index, pieces.row, pieces.row + d);
}

void Run(CacheTask& task) {
  const CacheTokens tokens = task.tokens();
  const size_t factor = task.attributes().factor;
  const size_t d = task.heads().key_dim();
  const RowStore blocks = task.store(kBlocks);
  const RowStore waiting = task.store(kWaiting);
  const uint64_t complete_before = tokens.seen / factor;
  Scratch scratch = task.policy_scratch();
  const Pieces pieces = Lay(task.config().compression, &scratch);
  float* const keys = pieces.tokens;
  float* const values = keys + factor * d;

  for (size_t w = 0; w < tokens.seen % factor; ++w) waiting.Load(w, keys + w * d, values + w * d);
  for (size_t t = 0; t < tokens.count; ++t) {
    const size_t place = static_cast<size_t>((tokens.seen + t) % factor);
    std::memcpy(keys + place * d, tokens.k + t * tokens.k_stride, d * sizeof(float));
    std::memcpy(values + place * d, tokens.v + t * tokens.v_stride, d * sizeof(float));
    if (place + 1 == factor) CompleteBlock(task, (tokens.seen + t) / factor, pieces);
  }
  const uint64_t end = tokens.seen + tokens.count;
  for (size_t w = 0; w < end % factor; ++w) waiting.Store(w, keys + w * d, values + w * d);

  const MemoryCompression& compression = task.config().compression;
  if (compression.has_null_row()) task.Add(compression.NullRow(task.kv_head()), -kAlways, kAlways, 0);
  task.Add(blocks.Block(0, complete_before), -kAlways, kAlways, 0);
  const int64_t first_end = static_cast<int64_t>((complete_before + 1) * factor - 1 - tokens.seen);
  task.Add(blocks.Block(complete_before, end / factor - complete_before), first_end, kAlways, static_cast<int64_t>(factor));
  task.Attend(tokens);
}

}  // namespace

const CachePolicyKind kMemoryCompressedCache = {Prepare, Run, nullptr};

}  // namespace tarn
