// Causal convolutions of columns (MATH 2.1).
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {

void CausalConv(const CausalConvArgs& a) {
  const size_t kept = a.taps - 1, all = a.mixes * a.width;
  // Row r of the rows before the chunk and then of its own.
  const auto row = [&](size_t r) { return r < kept ? a.state + r * a.width : a.x + (r - kept) * a.x_stride; };
  for (size_t t = 0; t < a.tokens; ++t) {
    for (size_t i = 0; i < all; ++i) {
      double sum = a.bias == nullptr ? 0.0 : a.bias[i];
      for (size_t j = 0; j < a.taps; ++j) sum += static_cast<double>(a.weight[j * all + i]) * row(t + j)[i % a.width];
      if (a.silu) sum /= 1.0 + std::exp(-sum);
      a.y[t * a.y_stride + i] = static_cast<float>(sum);
    }
  }
  for (size_t r = 0; r < kept; ++r) {
    for (size_t i = 0; i < a.width; ++i) a.state[r * a.width + i] = row(a.tokens + r)[i];
  }
}

}  // namespace tarn::reference
