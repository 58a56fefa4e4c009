// Policies of attention over whole sequences: which rows a query looks at. One file per policy that makes rows of its own, one line
// in the table of noncausal_cache.cc.
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

// What a policy has read and checked at preparation. Plain data of the op's.
struct NoncausalConfig {
  const format::CacheAttention* attributes = nullptr;
  Heads heads;
  Axis key_axis;
  RowSpans spans;
  MemoryCompression compression;  // of MemoryCompressed
  uint32_t tensor_count = 0;
  uint64_t build_floats = 0;  // of the piece of scratch that a BuildTask has
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

struct NoncausalPolicyKind {
  // Checks the policy's attributes and tensors; fills `config`. Errors: TARN_BAD_FORMAT.
  Status (*prepare)(PrepareContext& context, NoncausalConfig* config);
  // How many rows it makes of so many tokens; nullptr: the tokens' own rows are looked at.
  size_t (*rows)(const NoncausalConfig& config, size_t tokens);
  void (*build)(const BuildTask& task);
};

extern const NoncausalPolicyKind kNoncausalPooled;
extern const NoncausalPolicyKind kNoncausalMemoryCompressed;

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_NONCAUSAL_POLICY_H_
