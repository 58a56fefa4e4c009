// The CacheAttention op, whose systems differ in the rows that they keep.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_CACHE_ATTENTION_H_
#define TARN_TOOLS_CONVERT_ATTENTION_CACHE_ATTENTION_H_

#include <string>
#include <vector>

#include "tools/convert/attention/attention.h"

namespace tarn::convert {

// The attributes of the op, as schema/tarn.fbs has them; a parser sets those that its system has.
struct CacheAttention {
  format::CachePolicy policy = format::CachePolicy::Full;
  uint32_t capacity = 0;
  float scale = 1;
  uint32_t window = 0;
  uint32_t dilation = 1;
  uint32_t stride = 0;
  uint32_t num_strided = 0;
  std::vector<uint32_t> positions = {};
  bool mask_empty = true;
  uint32_t segment_len = 0;
  uint32_t mem_len = 0;
  uint32_t cmem_len = 0;
  uint32_t compression_ratio = 0;
  uint32_t factor = 0;
  bool null_kv = false;
  uint32_t pool_kernel = 0;
  uint32_t pool_stride = 0;
};

// A pair of states, keys and values: "<prefix>K" and "<prefix>V".
struct CacheRows {
  const char* prefix;
  uint32_t rows;
};

// The op of the context's form, CacheAttention or NoncausalCache, without its tensors. `system`: its name for people. `rows`: of
// the causal form, in the order of the schema; all of them may be stored in less than f32.
AttentionOp MakeCacheAttention(const CacheAttention& cache, const AttentionContext& context, const std::string& system,
                               const std::vector<CacheRows>& rows);

// One more pair of states of a causal op, of rows that are computed with and therefore stay f32.
void AddWaitingRows(const format::Heads& heads, CacheRows rows, AttentionOp* op);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_CACHE_ATTENTION_H_
