// Attributes of cache attention (MATH F3): softmax over an explicit, bounded list of rows. Which rows these are, a policy says:
// cache_policies.h.
#ifndef TARN_VARIANTS_CACHE_H_
#define TARN_VARIANTS_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "variants/limits.h"

namespace tarn {

// The numbers of these lists are those of model files: new entries go at the end.

// A row of compressed memory, of compression_ratio rows that leave the memory.
#define TARN_COMPRESSIONS(X)       \
  X(Mean, "mean") /* their mean */ \
  X(Conv, "conv") /* a bias, and a sum of projections of the layer input, one for each place among them */

// Rows of zeros before e rows that leave the memory together.
#define TARN_COMPRESSION_PADS(X)                                                                \
  X(LeftZero, "left_zero")           /* as many as fill the first group of compression_ratio */ \
  X(LeftRemainder, "left_remainder") /* e mod compression_ratio; rows behind the last full group are lost */

#define TARN_ENUMERATOR(id, name) k##id,
#define TARN_NAME(id, name) name,
enum class Compression : uint8_t { TARN_COMPRESSIONS(TARN_ENUMERATOR) };
enum class CompressionPad : uint8_t { TARN_COMPRESSION_PADS(TARN_ENUMERATOR) };
inline constexpr const char* kCompressionNames[] = {TARN_COMPRESSIONS(TARN_NAME)};
inline constexpr const char* kCompressionPadNames[] = {TARN_COMPRESSION_PADS(TARN_NAME)};
#undef TARN_ENUMERATOR
#undef TARN_NAME

// Every attribute that policies read, by its name in table CacheAttention of schema/tarn.fbs and then in config.json.
// SIZE(name, name in config.json, default, least, most), FLAG(name, default), LIST(name, name in config.json): ascending numbers,
// CHOICE(type, name, names of its values, default)
#define TARN_CACHE_ATTRIBUTES(SIZE, FLAG, LIST, CHOICE)                                                                      \
  SIZE(capacity, "max_context", 0, 1, kMaxRows)    /* tokens; one more is an error */                                        \
  SIZE(window, "window", 0, 1, kMaxRows)           /* tokens, the current one included; noncausal: the full width */         \
  SIZE(dilation, "dilation", 1, 1, kMaxRows)       /* every dilation-th token */                                             \
  SIZE(stride, "stride", 0, 1, kMaxRows)           /* every stride-th token, from stride - 1 */                              \
  SIZE(num_strided, "num_strided", 0, 1, kMaxRows) /* of these, the last ones */                                             \
  LIST(positions, "global_positions")              /* of tokens that stay, from 0 at the reset */                            \
  FLAG(mask_empty, true)                           /* false: rows that were never written take part as zeros */              \
  SIZE(segment_len, "segment_len", 0, 1, kMaxRows) /* tokens of a segment */                                                 \
  SIZE(mem_len, "mem_len", 0, 1, kMaxRows)         /* tokens before the segment */                                           \
  SIZE(cmem_len, "cmem_len", 0, 1, kMaxRows)       /* compressed rows before these */                                        \
  SIZE(compression_ratio, "compression_ratio", 0, 1, kMaxRows)                                                               \
  SIZE(factor, "compression_factor", 0, 2, kMaxRows) /* tokens of a convolved row */                                         \
  FLAG(null_kv, false)                               /* a learned row that is always visible */                              \
  SIZE(pool_kernel, "pool_kernel", 0, 1, kMaxRows)   /* row p: the mean of tokens [p * pool_stride, p * pool_stride + it) */ \
  SIZE(pool_stride, "pool_stride", 0, 1, kMaxRows)                                                                           \
  FLAG(global_full, false) /* tokens at `positions` see everything before them */                                            \
  CHOICE(Compression, compression, kCompressionNames, kMean)                                                                 \
  CHOICE(CompressionPad, pad, kCompressionPadNames, kLeftZero)

struct CacheAttributes {
#define TARN_SIZE(name, key, fallback, least, most) uint32_t name = fallback;
#define TARN_FLAG(name, fallback) bool name = fallback;
#define TARN_LIST(name, key) uint32_t num_##name = 0, last_##name = 0;  // the other numbers stay where they are
#define TARN_CHOICE(type, name, names, fallback) type name = type::fallback;
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST, TARN_CHOICE)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
#undef TARN_CHOICE
  float scale = 1;     // of q . k
  float soft_cap = 0;  // logits become soft_cap * tanh(logit / soft_cap); 0: they stay
  // Columns of a table [H, bias_behind + bias_ahead] of what is added to logits by distance: for the token itself and those before
  // it, and for those behind it. 0: no table.
  uint32_t bias_behind = 0, bias_ahead = 0;

  constexpr bool has_conv() const { return compression == Compression::kConv; }
};

// Of rows that leave the memory of the policy Compressive together: rows of zeros before them, and rows that they become.
constexpr uint64_t PadOf(const CacheAttributes& a, uint64_t evicted) {
  const uint64_t ratio = a.compression_ratio, rest = evicted % ratio;
  return a.pad == CompressionPad::kLeftRemainder || rest == 0 ? rest : ratio - rest;
}
constexpr uint64_t CompressedRows(const CacheAttributes& a, uint64_t evicted) {
  return (evicted + PadOf(a, evicted)) / a.compression_ratio;
}
// Rows of a convolution that are complete before their tokens leave the memory, at most. Tokens leave in runs of a segment, the
// first one perhaps a shorter one, and mem_len + segment_len of them are there.
constexpr uint64_t EarlyRows(const CacheAttributes& a) {
  const uint64_t runs = (uint64_t{a.mem_len} + a.segment_len - 1) / a.segment_len + 1;
  return a.has_conv() ? runs * CompressedRows(a, a.segment_len) : 0;
}

namespace internal {
enum CacheAttributePlace {
#define TARN_PLACE(name, ...) k_##name,
#define TARN_PLACE_OF_CHOICE(type, name, ...) k_##name,
  TARN_CACHE_ATTRIBUTES(TARN_PLACE, TARN_PLACE, TARN_PLACE, TARN_PLACE_OF_CHOICE)
#undef TARN_PLACE
#undef TARN_PLACE_OF_CHOICE
};
}  // namespace internal

// Sets of attributes, as bits: reads::window | reads::stride.
namespace reads {
#define TARN_BIT(name, ...) constexpr uint32_t name = 1u << internal::k_##name;
#define TARN_BIT_OF_CHOICE(type, name, ...) constexpr uint32_t name = 1u << internal::k_##name;
TARN_CACHE_ATTRIBUTES(TARN_BIT, TARN_BIT, TARN_BIT, TARN_BIT_OF_CHOICE)
#undef TARN_BIT
#undef TARN_BIT_OF_CHOICE
}  // namespace reads

}  // namespace tarn

#endif  // TARN_VARIANTS_CACHE_H_
