// What the linear state divides by.
#ifndef TARN_KERNELS_ATTENTION_DENOMINATOR_H_
#define TARN_KERNELS_ATTENTION_DENOMINATOR_H_

#include <algorithm>
#include <cmath>

#include "kernels/linear_state.h"

namespace tarn {

// From s = phi(q) . z. Trigonometric features can make s zero or negative, so every mode but kNone guards it (MATH 1.2.6).
inline float GuardedDenominator(DenMode mode, float s, float eps) {
  if (mode == DenMode::kAdd) return s + eps;
  if (mode == DenMode::kAbsClampMin) s = std::fabs(s);
  return std::max(s, eps);
}

}  // namespace tarn

#endif  // TARN_KERNELS_ATTENTION_DENOMINATOR_H_
