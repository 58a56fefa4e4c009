// Softmax over everything that was seen (MATH 1.1): `capacity` rows, one token more is an error.
#include "runtime/ops/attention/cache/cache_policy.h"
#include "runtime/ops/attention/cache/noncausal_policy.h"

namespace tarn {
namespace {

void Prepare(CacheConfig* config) {
  config->adds_own_rows = false;  // they are stored first and read from there
  config->max_blocks = 2;         // what all tokens see, and what comes in with each
}

void Run(CacheTask& task) {
  const RowStore rows = task.store(0);
  const CacheTokens tokens = task.tokens();
  for (size_t t = 0; t < tokens.count; ++t) {
    rows.Store(tokens.seen + t, tokens.k + t * tokens.k_stride, tokens.v + t * tokens.v_stride);
  }
  // A step sees every row: one block. Of a chunk's rows each comes in with its own token.
  const uint64_t seen_by_all = tokens.seen + 1;
  CacheBlock before = rows.Block(0, seen_by_all), own = rows.Block(seen_by_all, tokens.count - 1);
  before.position = -static_cast<int64_t>(tokens.seen);
  own.position = 1;
  task.Add(before, -kAlways, kAlways, 0);
  task.Add(own, 1, kAlways, 1);
  task.Attend(tokens);
}

void FindRows(const CacheConfig&, uint64_t tokens_seen, uint64_t* rows) { rows[0] = tokens_seen; }

}  // namespace

const CachePolicyKind kFullCache = {Prepare, Run, FindRows};
const NoncausalPolicyKind kNoncausalFull = {nullptr, nullptr, nullptr, nullptr};

}  // namespace tarn
