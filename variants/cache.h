// Attributes of cache attention (MATH F3): softmax over an explicit, bounded list of rows. Which rows these are, a policy says:
// cache_policies.h.
#ifndef TARN_VARIANTS_CACHE_H_
#define TARN_VARIANTS_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "variants/limits.h"

namespace tarn {

// Every attribute that policies read, by its name in table CacheAttention of schema/tarn.fbs and then in config.json.
// SIZE(name, name in config.json, default, least, most), FLAG(name, default), LIST(name, name in config.json): ascending numbers
#define TARN_CACHE_ATTRIBUTES(SIZE, FLAG, LIST)                                                                              \
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
  FLAG(global_full, false) /* tokens at `positions` see everything before them */

struct CacheAttributes {
#define TARN_SIZE(name, key, fallback, least, most) uint32_t name = fallback;
#define TARN_FLAG(name, fallback) bool name = fallback;
#define TARN_LIST(name, key) uint32_t num_##name = 0, last_##name = 0;  // the other numbers stay where they are
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
  float scale = 1;     // of q . k
  float soft_cap = 0;  // logits become soft_cap * tanh(logit / soft_cap); 0: they stay
  // Columns of a table [H, bias_behind + bias_ahead] of what is added to logits by distance: for the token itself and those before
  // it, and for those behind it. 0: no table.
  uint32_t bias_behind = 0, bias_ahead = 0;
};

namespace internal {
enum CacheAttributePlace {
#define TARN_PLACE(name, ...) k_##name,
  TARN_CACHE_ATTRIBUTES(TARN_PLACE, TARN_PLACE, TARN_PLACE)
#undef TARN_PLACE
};
}  // namespace internal

// Sets of attributes, as bits: reads::window | reads::stride.
namespace reads {
#define TARN_BIT(name, ...) constexpr uint32_t name = 1u << internal::k_##name;
TARN_CACHE_ATTRIBUTES(TARN_BIT, TARN_BIT, TARN_BIT)
#undef TARN_BIT
}  // namespace reads

}  // namespace tarn

#endif  // TARN_VARIANTS_CACHE_H_
