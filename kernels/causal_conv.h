// Arguments of causal convolutions of columns, each with its own taps (MATH 2.1):
//   y_t = f(bias + sum_j weight_j * x_(t - k + 1 + j)), j = 0..k-1, f the identity or silu
// There may be m of them of the same x, side by side in y.
#ifndef TARN_KERNELS_CAUSAL_CONV_H_
#define TARN_KERNELS_CAUSAL_CONV_H_

#include <cstddef>

#include "variants/limits.h"

namespace tarn {

// A chunk of C tokens of one sequence. A chunk gives the bits of its tokens one by one.
struct CausalConvArgs {
  size_t tokens;   // C
  size_t width;    // n, of x
  size_t mixes;    // m
  size_t taps;     // k, kMinConvTaps to kMaxConvTaps
  const float* x;  // [C, n], rows x_stride apart
  size_t x_stride;
  const float* weight;  // [k, m*n], of the oldest token first
  const float* bias;    // [m*n], or nullptr
  bool silu;
  float* state;  // [k - 1, n] the rows before x, the oldest first; moved on to the end of the chunk
  float* y;      // [C, m*n], rows y_stride apart; not x
  size_t y_stride;
};

}  // namespace tarn

#endif  // TARN_KERNELS_CAUSAL_CONV_H_
