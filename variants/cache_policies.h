// Policies of cache attention: which rows stay, and who sees them. An entry each. The numbers that model files store are the places
// in this list, so new ones go at the end.
//
// To add one: an entry here, runtime/ops/attention/cache/<name>.cc with what it adds and stores, and a golden file. Everything else
// is made from the entry: enums, the tables of the ops, what the runtime and the converter check, states, tests.
#ifndef TARN_VARIANTS_CACHE_POLICIES_H_
#define TARN_VARIANTS_CACHE_POLICIES_H_

#include "variants/cache.h"
#include "variants/form.h"
#include "variants/shape.h"

namespace tarn {

// Rows of the causal form: states "<prefix>K" [Hkv, rows, d] and "<prefix>V" [Hkv, rows, dv], F32, F16 or I8, all of a policy
// alike; after a pair of I8 its scales [Hkv, 2, rows] F32.
struct CacheRows {
  const char* prefix;
  uint64_t (*rows)(const CacheAttributes&);  // 0: there are none with these attributes
  bool f32;                                  // they are computed with, and stay F32; such rows are a policy's last
};

// A constant of the op, F32. Of rank 0: there is none.
struct CacheTensor {
  const char* name;
  TensorShape (*shape)(const CacheAttributes&, const HeadSizes&);
};

constexpr uint32_t kMaxCacheRows = 4;
constexpr uint32_t kMaxCacheTensors = 4;

struct CachePolicyInfo {
  const char* name;
  uint32_t forms;
  uint32_t attributes;  // that it reads, in every form
  uint32_t of_causal;   // those that its causal form reads beside them
  CacheRows rows[kMaxCacheRows];
  CacheTensor tensors[kMaxCacheTensors];
  // Returns why the attributes cannot stand together; nullptr: they can. No such function: they always can.
  const char* (*conflict)(const CacheAttributes&, const HeadSizes&);
  const char* source;

  constexpr uint32_t AttributesOf(uint32_t form) const { return attributes | (form == kCausalForm ? of_causal : 0); }
};

// a: the attributes; h: the sizes of the heads.
#define TARN_ROWS(...) [](const CacheAttributes& a) -> uint64_t { return __VA_ARGS__; }
#define TARN_SHAPE(...) \
  [](const CacheAttributes& a, const HeadSizes& h) -> TensorShape { return static_cast<void>(a), TensorShape{__VA_ARGS__}; }
#define TARN_SHAPE_IF(condition, ...) \
  [](const CacheAttributes& a, const HeadSizes& h) -> TensorShape { return condition ? TensorShape{__VA_ARGS__} : TensorShape{}; }

constexpr const char* CompressionConflict(const CacheAttributes& a, const HeadSizes& h) {
  if (a.capacity < a.factor) return "a block has more tokens than the cache takes: no block would ever be complete";
  return h.value_dim != h.key_dim ? "keys and values share a convolution: heads of the same width expected" : nullptr;
}

constexpr const char* CompressiveConflict(const CacheAttributes& a, const HeadSizes&) {
  return a.has_conv() && a.compression_ratio > a.segment_len ? "compression_ratio is above segment_len" : nullptr;
}

// X(name in code, fields of CachePolicyInfo)
#define TARN_CACHE_POLICIES(X)                                                                                                    \
  X(Full, "full", kCausalForm | kNoncausalForm | kCrossForm, reads::capacity, 0, {{"", TARN_ROWS(a.capacity), false}}, {},        \
    nullptr, "all tokens (MATH 1.1)")                                                                                             \
  X(Window, "window", kCausalForm | kNoncausalForm, reads::window, reads::dilation | reads::mask_empty,                           \
    {{"", TARN_ROWS(uint64_t{a.window} * a.dilation), false}}, {}, nullptr,                                                       \
    "t, t - dilation, ..., `window` of them; noncausal: a distance of at most window / 2 (MATH 1.8.4, 1.8.5)")                    \
  X(Strided, "strided", kCausalForm, reads::window | reads::stride | reads::num_strided, 0,                                       \
    {{"", TARN_ROWS(a.window), false}, {"strided_", TARN_ROWS(a.num_strided), false}}, {}, nullptr,                               \
    "a window, and of the tokens with t mod stride = stride - 1 the last num_strided (Child et al. 2019, bounded; MATH 1.8.5)")   \
  X(L2g, "l2g", kCausalForm | kNoncausalForm, reads::window | reads::positions, reads::global_full,                               \
    {{"", TARN_ROWS(a.window), false},                                                                                            \
     {"global_", TARN_ROWS(a.global_full ? uint64_t{a.last_positions} + 1 : a.num_positions), false}},                            \
    {}, nullptr, "a window, and the tokens at global_positions; noncausal: these see all tokens (MATH 1.8.6)")                    \
  X(Compressive, "compressive", kCausalForm,                                                                                      \
    reads::segment_len | reads::mem_len | reads::cmem_len | reads::compression_ratio | reads::compression | reads::pad, 0,        \
    {{"", TARN_ROWS(a.segment_len), false},                                                                                       \
     {"memory_", TARN_ROWS(a.mem_len), false},                                                                                    \
     {"compressed_", TARN_ROWS(a.cmem_len + EarlyRows(a)), false},                                                                \
     {"sum_", TARN_ROWS(a.has_conv() ? 1 : 0), true}},                                                                            \
    {{"k_compress_bias", TARN_SHAPE_IF(a.has_conv(), 2, {h.kv_heads, h.key_dim})},                                                \
     {"v_compress_bias", TARN_SHAPE_IF(a.has_conv(), 2, {h.kv_heads, h.value_dim})}},                                             \
    CompressiveConflict, "the segment, mem_len tokens before it, and compressed previous tokens (Rae et al. 2020; MATH 1.8.7 b)") \
  X(MemoryCompressed, "memory_compressed", kCausalForm | kNoncausalForm, reads::capacity | reads::factor | reads::null_kv, 0,     \
    {{"", TARN_ROWS(a.capacity / a.factor), false}, {"waiting_", TARN_ROWS(a.factor - 1), true}},                                 \
    {{"conv_weight", TARN_SHAPE(3, {h.kv_heads, h.key_dim, a.factor * h.key_dim})},                                               \
     {"conv_bias", TARN_SHAPE(2, {h.kv_heads, h.key_dim})},                                                                       \
     {"null_k", TARN_SHAPE_IF(a.null_kv, 2, {h.kv_heads, h.key_dim})},                                                            \
     {"null_v", TARN_SHAPE_IF(a.null_kv, 2, {h.kv_heads, h.key_dim})}},                                                           \
    CompressionConflict, "rows that a convolution makes of `factor` tokens each (Liu et al. 2018; MATH 1.9.3)")                   \
  X(Pooled, "pooled", kNoncausalForm, reads::window | reads::pool_kernel | reads::pool_stride, 0, {}, {}, nullptr,                \
    "means of pool_kernel tokens, seen where they touch a distance of at most window / 2 (Zhang et al. 2021; MATH 1.9.6)")

enum class CachePolicy : uint8_t {
#define TARN_ENUMERATOR(id, ...) k##id,
  TARN_CACHE_POLICIES(TARN_ENUMERATOR)
#undef TARN_ENUMERATOR
};

inline constexpr CachePolicyInfo kCachePolicies[] = {
#define TARN_INFO(id, ...) {__VA_ARGS__},
    TARN_CACHE_POLICIES(TARN_INFO)
#undef TARN_INFO
};
constexpr size_t kCachePolicyCount = sizeof(kCachePolicies) / sizeof(kCachePolicies[0]);

constexpr const CachePolicyInfo& InfoOf(CachePolicy policy) { return kCachePolicies[static_cast<size_t>(policy)]; }

// Whether rows stand at a known distance from a token, so that logits may have a bias by distance.
constexpr bool HasDistances(CachePolicy policy, const CacheAttributes& a, uint32_t form) {
  if (form == kCrossForm) return false;
  return policy == CachePolicy::kFull || policy == CachePolicy::kL2g || (policy == CachePolicy::kWindow && a.dilation == 1);
}

}  // namespace tarn

#endif  // TARN_VARIANTS_CACHE_POLICIES_H_
