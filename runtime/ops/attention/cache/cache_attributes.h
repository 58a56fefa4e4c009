// Attributes of a cache op: read once and checked. What they are, which policy reads which, and the tensors and states that follow
// from them, is in variants/cache_policies.h.
#ifndef TARN_RUNTIME_OPS_ATTENTION_CACHE_CACHE_ATTRIBUTES_H_
#define TARN_RUNTIME_OPS_ATTENTION_CACHE_CACHE_ATTRIBUTES_H_

#include "runtime/ops/attention/attention.h"
#include "variants/cache_policies.h"

namespace tarn {

// What an op of either form has read. Plain data of the op's. Errors: TARN_BAD_FORMAT.
struct CacheVariant {
  // Policy, attributes and heads. `form`: one bit.
  static Result<CacheVariant> Read(const format::CacheAttention& table, uint32_t form);
  // Then its tensors. Each is checked.
  Status ReadTensors(const PrepareContext& context);

  const CachePolicyInfo& info() const { return InfoOf(policy); }
  bool has_bias() const { return attributes.bias_behind > 0 || bias_slopes != nullptr; }
  // Of the query heads of a key/value head.
  DistanceBias BiasOf(size_t kv_head) const;

  CachePolicy policy = CachePolicy::kFull;
  CacheAttributes attributes;
  const flatbuffers::Vector<uint32_t>* positions = nullptr;
  Heads heads;
  const float* tensors[kMaxCacheTensors] = {};  // as the policy lists them; nullptr: there is none
  uint32_t tensor_count = 0;                    // that the op has
  const float* bias_table = nullptr;            // [H, bias_behind + bias_ahead]
  const float* bias_slopes = nullptr;           // [H]
};

// Writes a cache op in words: variant, `part` if it is not "", policy, what the policy reads that is not at its default, and heads.
void DescribeCache(const format::CacheAttention& table, uint32_t form, const char* part, char* text, size_t text_bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_CACHE_ATTRIBUTES_H_
