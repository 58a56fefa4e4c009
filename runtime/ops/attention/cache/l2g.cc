// Local to global (MATH 1.8.6): the last `window` tokens and all global tokens seen so far, given by position. A token that is both
// counts once: its global row is looked at when it has left the window. Noncausal: `window` is that of both sides.
#include "runtime/ops/attention/cache/cache_policy.h"
#include "runtime/ops/attention/cache/noncausal_policy.h"

namespace tarn {
namespace {

void Prepare(CacheConfig* config) { config->max_blocks = kWindowBlocks + config->variant.attributes.num_positions; }

// The tokens at global positions see everything before them, in place of what Attend has found for them. `global` has a row for
// every token up to the last of these positions.
void AttendFull(CacheTask& task, const CacheTokens& tokens, const RowStore& global) {
  for (const uint64_t position : *task.config().variant.positions) {
    if (position < tokens.seen) continue;
    if (position >= tokens.seen + tokens.count) break;
    const size_t offset = static_cast<size_t>(position - tokens.seen);
    CacheBlock before = global.Block(0, tokens.seen);
    before.position = -static_cast<int64_t>(position);
    task.Add(before, -kAlways, kAlways, 0);
    CacheBlock own = FloatBlock(offset + 1, tokens.k, tokens.k_stride, tokens.v, tokens.v_stride);
    own.position = -static_cast<int64_t>(offset);
    task.Add(own, -kAlways, kAlways, 0);
    task.Attend(tokens.Every(1, offset, 1));
  }
}

void Run(CacheTask& task) {
  const CacheTokens tokens = task.tokens();
  const RowStore local = task.store(0);
  const RowStore global = task.store(1);
  const auto& positions = *task.config().variant.positions;
  const bool full = task.attributes().global_full;
  const int64_t window = task.attributes().window;
  const int64_t seen = static_cast<int64_t>(tokens.seen);
  const int64_t end = seen + static_cast<int64_t>(tokens.count);

  AddWindow(task, local, tokens, /*masked=*/true);
  for (uint32_t i = 0; i < positions.size() && positions.Get(i) < end; ++i) {
    const int64_t offset = static_cast<int64_t>(positions.Get(i)) - seen;  // in this chunk, or below 0
    if (offset < 0) {
      CacheBlock row = global.Block(full ? positions.Get(i) : i, 1);
      row.position = offset;
      task.Add(row, offset + window, kAlways, 0);
    } else {
      task.AddOwn(tokens, static_cast<size_t>(offset), 1, 1, offset + window, kAlways, 0);
    }
  }
  task.Attend(tokens);
  if (full) AttendFull(task, tokens, global);

  StoreWindow(local, tokens);
  const auto store = [&](uint64_t row, uint64_t position) {
    const size_t t = static_cast<size_t>(position - tokens.seen);
    global.Store(row, tokens.k + t * tokens.k_stride, tokens.v + t * tokens.v_stride);
  };
  for (uint64_t p = tokens.seen; full && p < global.rows() && p < tokens.seen + tokens.count; ++p) store(p, p);
  for (uint32_t i = 0; !full && i < positions.size() && positions.Get(i) < end; ++i) {
    if (positions.Get(i) >= seen) store(i, positions.Get(i));
  }
}

void FindRows(const CacheConfig& config, uint64_t tokens_seen, uint64_t* rows) {
  rows[0] = tokens_seen % config.stores[0].rows;
  if (config.variant.attributes.global_full) {
    if (tokens_seen < config.stores[1].rows) rows[1] = tokens_seen;
    return;
  }
  const auto& positions = *config.variant.positions;
  for (uint32_t i = 0; i < positions.size(); ++i) {
    if (positions.Get(i) == tokens_seen) rows[1] = i;
  }
}

void PrepareNoncausal(NoncausalConfig* config) {
  const CacheAttributes& a = config->variant.attributes;
  config->spans.reach = a.window / 2;
  config->max_blocks = 1 + 2 * uint64_t{a.num_positions};
}

// The global rows: seen by the queries before whose window they stand, and by those behind whose window they do.
size_t AddGlobalRows(const NoncausalConfig& config, const CacheBlock& all, RowRange queries, CacheBlock* blocks) {
  const int64_t begin = static_cast<int64_t>(queries.first), reach = config.spans.reach;
  size_t count = 0;
  ForEachRun(*config.variant.positions, {0, all.rows}, [&](RowRange run) {
    const int64_t first = static_cast<int64_t>(run.first) - begin, last = first + static_cast<int64_t>(run.count) - 1;
    CacheBlock rows = all;
    rows.rows = run.count;
    rows.keys = static_cast<const float*>(all.keys) + run.first * all.key_stride;
    rows.values = static_cast<const float*>(all.values) + run.first * all.value_stride;
    rows.step = 1;
    rows.position = first;
    if (last > reach) {
      blocks[count] = rows;
      blocks[count++].until = first - reach;
    }
    if (first + reach + 1 < static_cast<int64_t>(queries.count)) {
      blocks[count] = rows;
      blocks[count++].from = first + reach + 1;
    }
  });
  return count;
}

}  // namespace

const CachePolicyKind kL2gCache = {Prepare, Run, FindRows};
const NoncausalPolicyKind kNoncausalL2g = {PrepareNoncausal, nullptr, nullptr, AddGlobalRows};

}  // namespace tarn
