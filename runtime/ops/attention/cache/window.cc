// Sliding and dilated windows (MATH 1.8.4, 1.8.5): token t sees t, t - dilation, ... (`window` of them). A dilated window is
// `dilation` sliding windows, each over the tokens of one residue, with a ring of its own.
#include "runtime/ops/attention/cache/cache_policy.h"
#include "runtime/ops/attention/cache/noncausal_policy.h"

namespace tarn {
namespace {

void Prepare(CacheConfig* config) { config->max_blocks = kWindowBlocks; }

void PrepareNoncausal(NoncausalConfig* config) { config->spans.reach = config->variant.attributes.window / 2; }

void Run(CacheTask& task) {
  const CacheAttributes& a = task.attributes();
  const size_t dilation = a.dilation;
  const CacheTokens all = task.tokens();
  const RowStore rows = task.store(0);
  for (size_t first = 0; first < dilation && first < all.count; ++first) {
    // Tokens first, first + dilation, ... of the chunk, and their count in their own window so far.
    CacheTokens tokens = all.Every(dilation, first, (all.count - first + dilation - 1) / dilation);
    tokens.seen = (all.seen + first) / dilation;
    const RowStore ring = rows.Part((all.seen + first) % dilation * a.window, a.window);
    AddWindow(task, ring, tokens, a.mask_empty);
    task.Attend(tokens);
    StoreWindow(ring, tokens);
  }
}

void FindRows(const CacheConfig& config, uint64_t tokens_seen, uint64_t* rows) {
  const CacheAttributes& a = config.variant.attributes;
  rows[0] = tokens_seen % a.dilation * a.window + tokens_seen / a.dilation % a.window;
}

}  // namespace

void AddWindow(CacheTask& task, const RowStore& ring, const CacheTokens& tokens, bool masked) {
  const int64_t window = static_cast<int64_t>(ring.rows());
  const int64_t seen = static_cast<int64_t>(tokens.seen);
  // Position p is visible to position t iff t - window < p <= t. Rows that were never written have positions below 0.
  const int64_t low = masked && seen < window ? 0 : seen - window;
  task.AddRing(ring, low, seen, -kAlways, low + window - seen, 1);
  task.AddOwn(tokens, 0, tokens.count, 1, 0, window, 1);
}

void StoreWindow(const RowStore& ring, const CacheTokens& tokens) {
  const size_t first = tokens.count > ring.rows() ? tokens.count - static_cast<size_t>(ring.rows()) : 0;
  for (size_t t = first; t < tokens.count; ++t) {
    ring.Store((tokens.seen + t) % ring.rows(), tokens.k + t * tokens.k_stride, tokens.v + t * tokens.v_stride);
  }
}

const CachePolicyKind kWindowCache = {Prepare, Run, FindRows};
const NoncausalPolicyKind kNoncausalWindow = {PrepareNoncausal, nullptr, nullptr, nullptr};

}  // namespace tarn
