// How tokens of a chunk weigh under a scalar decay (MATH 0.2): products of decays, row by row. For the chunks of linear states.
#if defined(TARN_KERNELS_ATTENTION_CHUNK_DECAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_ATTENTION_CHUNK_DECAY_INL_H_
#undef TARN_KERNELS_ATTENTION_CHUNK_DECAY_INL_H_
#else
#define TARN_KERNELS_ATTENTION_CHUNK_DECAY_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// decay [C] = exp(log_decay), carry [C] = exp(c_i): what is left of the state from before the chunk. `log_decay` nullptr: all 1,
// and `decay` is not written.
HWY_INLINE void MakeDecays(size_t tokens, const float* log_decay, float* decay, float* carry) {
  if (log_decay != nullptr) Map(tokens, log_decay, decay, [](DF d, VF v) HWY_ATTR { return Exp(d, v); });
  float product = 1.0f;
  for (size_t i = 0; i < tokens; ++i) {
    if (log_decay != nullptr) product *= decay[i];
    carry[i] = product;
  }
}

// left [C], exp(c_i - c_j) write_j: from row i - 1 to row i. Each entry is a product of decays, all in [0, 1]: no exponential of a
// difference, so no digits are lost in one, and nothing that could overflow.
HWY_INLINE void NextRow(size_t i, float decay, float write, float* left) {
  if (decay != 1.0f) Scale(i, decay, left);
  left[i] = write;
}

HWY_INLINE void Weigh(size_t n, const float* by, float* x) {
  Map2(n, by, x, x, [](DF, VF v, VF w) HWY_ATTR { return hn::Mul(v, w); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_ATTENTION_CHUNK_DECAY_INL_H_
