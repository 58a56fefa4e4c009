// The CacheAttention op, whose systems differ in the rows that they keep, and the attributes that its policies read.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_CACHE_ATTENTION_H_
#define TARN_TOOLS_CONVERT_ATTENTION_CACHE_ATTENTION_H_

#include <string>
#include <vector>

#include "tools/convert/attention/attention.h"
#include "variants/cache_policies.h"

namespace tarn::convert {

// Learned numbers that are added to logits by distance: those of the layer, or of all layers of the stack.
enum class BiasTable : uint8_t { kNone, kLayer, kModel };

struct CacheAttention : CacheAttributes {
  CachePolicy policy = CachePolicy::kFull;
  std::vector<uint32_t> positions = {};
  BiasTable distance_bias = BiasTable::kNone;
  uint32_t distance_buckets = 0;  // with a bias
  uint32_t distance_max = 0;
  std::vector<float> distance_slopes = {};
  bool global_projections = false;  // noncausal: the attention of the tokens at `positions` has projections of its own
};

// scale and soft_cap, of the logits.
void ParseLogits(Fields* fields, const AttentionContext& context, CacheAttention* cache);

// A bias by distance, where rows have distances. It sets the columns of the table, too.
void ParseDistanceBias(Fields* fields, const AttentionContext& context, CacheAttention* cache);

// The table of that bias, where it has one.
AttentionTensor DistanceTable(const CacheAttention& cache, const AttentionContext& context);

// What the policy reads in the context's form, what ParseLogits and ParseDistanceBias do, within the bounds of variants/cache.h.
// Errors: a missing field, one out of its bounds; fields that cannot stand together.
CacheAttention ParseCachePolicy(Fields* fields, const AttentionContext& context, CachePolicy policy);

// The op of the context's form, CacheAttention or NoncausalCache, without its tensors. `system`: its name for people. Rows that are
// not computed with may be stored in less than f32.
AttentionOp MakeCacheAttention(const CacheAttention& cache, const AttentionContext& context, const std::string& system);

// What an op of policy Compressive reads for its kind of compression.
void AddCompression(const CacheAttention& cache, const AttentionContext& context, AttentionOp* op);
// Errors: compressed rows that no checkpoint's hidden rows have. `key`: the field that names the system or policy.
void CheckCompression(Fields* fields, const AttentionContext& context, const CacheAttention& cache, const char* key);
// Errors: pools between which tokens would be lost.
void CheckPools(Fields* fields, uint32_t pool_kernel, uint32_t pool_stride);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_CACHE_ATTENTION_H_
