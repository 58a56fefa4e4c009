// Policies of cache attention in their noncausal form: which rows a query looks at. What a policy is called, reads and declares
// stands in variants/cache_policies.h.
#ifndef TARN_RUNTIME_OPS_ATTENTION_CACHE_NONCAUSAL_POLICY_H_
#define TARN_RUNTIME_OPS_ATTENTION_CACHE_NONCAUSAL_POLICY_H_

#include "runtime/ops/attention/cache/memory_compression.h"
#include "runtime/ops/attention/row_blocks.h"

namespace tarn {

// Row p stands for the tokens [p * stride, p * stride + length). A query sees it if one of them is at a distance of at most
// `reach`.
struct RowSpans {
  int64_t stride = 1;
  int64_t length = 1;
  int64_t reach = kAlways;  // everything is seen
};

// What was read and checked at preparation. Plain data of the op's.
struct NoncausalConfig {
  CacheVariant variant;
  Axis key_axis;
  // Set by the policy's Prepare:
  RowSpans spans;
  uint64_t max_blocks = 1;        // that a range of queries looks at
  MemoryCompression compression;  // of MemoryCompressed
  uint64_t build_floats = 0;      // of the piece of scratch that a BuildTask has
};

// Rows of one key/value head that are to be made.
struct BuildTask {
  const NoncausalConfig& config;
  const Kernels& kernels;
  size_t kv_head;
  RowRange rows;
  size_t tokens;
  const float* k;  // of token 0
  size_t k_stride;
  const float* v;
  size_t v_stride;
  float* keys;     // [rows.count, d]
  float* values;   // [rows.count, dv]
  float* scratch;  // [build_floats]
};
constexpr size_t kBuiltRows = 8;  // of a task, at most

// f(run) for the runs of neighbouring tokens at `positions`, ascending, that stand within `rows`.
template <typename F>
void ForEachRun(const flatbuffers::Vector<uint32_t>& positions, RowRange rows, const F& f) {
  RowRange run{0, 0};
  for (const size_t position : positions) {
    if (position < rows.first) continue;
    if (position >= rows.first + rows.count) break;
    if (run.count > 0 && position == run.first + run.count) {
      ++run.count;
      continue;
    }
    if (run.count > 0) f(run);
    run = {position, 1};
  }
  if (run.count > 0) f(run);
}

struct NoncausalPolicyKind {
  // Sets what Run needs; attributes and tensors have been read. nullptr: nothing.
  void (*prepare)(NoncausalConfig* config);
  // How many rows it makes of so many tokens; nullptr: the tokens' own rows are looked at.
  size_t (*rows)(const NoncausalConfig& config, size_t tokens);
  void (*build)(const BuildTask& task);
  // Adds what these queries see of `all` rows beside the spans, as blocks; returns how many. nullptr: nothing.
  size_t (*add)(const NoncausalConfig& config, const CacheBlock& all, RowRange queries, CacheBlock* blocks);
};

// kNoncausal<Policy>: of the policies that have a noncausal form.
#define TARN_DECLARE(id, ...) extern const NoncausalPolicyKind kNoncausal##id;
TARN_CACHE_POLICIES(TARN_DECLARE)
#undef TARN_DECLARE

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_NONCAUSAL_POLICY_H_
