// Local window and strided rows (MATH 1.8.5; Child et al. 2019, bounded): the last `window` tokens, and of the tokens with
// t mod stride = stride - 1 the last `num_strided`. A token that is both counts once: its strided row is looked at when it has left
// the window.
#include "runtime/ops/attention/cache/cache_policy.h"

namespace tarn {
namespace {

void Prepare(CacheConfig* config) { config->max_blocks = kWindowBlocks + kRingBlocks + kOwnBlocks; }

void Run(CacheTask& task) {
  const CacheTokens tokens = task.tokens();
  const RowStore local = task.store(0);
  const RowStore strided = task.store(1);
  const int64_t window = task.attributes().window;
  const int64_t stride = task.attributes().stride;
  const int64_t kept = task.attributes().num_strided;
  const int64_t seen = static_cast<int64_t>(tokens.seen);
  const int64_t count = static_cast<int64_t>(tokens.count);

  AddWindow(task, local, tokens, /*masked=*/true);
  // Strided token j has position p_j = j*stride + stride - 1. It is seen from p_j + window, when it leaves the window, until
  // p_j + kept*stride, when `kept` newer ones are there.
  const int64_t stored = seen / stride;  // those before this chunk
  const int64_t low = stored > kept ? stored - kept : 0;
  const int64_t low_position = low * stride + stride - 1 - seen;
  task.AddRing(strided, low, stored, low_position + window, low_position + kept * stride, stride);
  const int64_t own_first = stored * stride + stride - 1 - seen;
  const int64_t own_count = (seen + count) / stride - stored;
  if (own_count > 0) {
    task.AddOwn(tokens, static_cast<size_t>(own_first), static_cast<size_t>(own_count), static_cast<size_t>(stride),
                own_first + window, own_first + kept * stride, stride);
  }
  task.Attend(tokens);

  StoreWindow(local, tokens);
  for (int64_t j = 0; j < own_count; ++j) {
    const size_t t = static_cast<size_t>(own_first + j * stride);
    strided.Store(static_cast<uint64_t>((stored + j) % kept), tokens.k + t * tokens.k_stride, tokens.v + t * tokens.v_stride);
  }
}

void FindRows(const CacheConfig& config, uint64_t tokens_seen, uint64_t* rows) {
  const CacheAttributes& a = config.variant.attributes;
  rows[0] = tokens_seen % config.stores[0].rows;
  if (tokens_seen % a.stride + 1 == a.stride) rows[1] = tokens_seen / a.stride % a.num_strided;
}

}  // namespace

const CachePolicyKind kStridedCache = {Prepare, Run, FindRows};

}  // namespace tarn
