// Rows that are mixed elementwise (MATH 2.1).
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {

// Mamba 2 (Dao, Gu 2024): y = o + D v. RWKV-7 (Peng et al. 2025): y = o + (sum_i w_i q_i k_i) v.
void Skip(const SkipArgs& a) {
  const bool products = a.q != nullptr;
  for (size_t row = 0; row < a.rows; ++row) {
    for (size_t h = 0; h < a.heads; ++h) {
      double c = products ? 0.0 : static_cast<double>(a.weight[h]);
      for (size_t i = 0; products && i < a.key_dim; ++i) {
        const size_t column = h * a.key_dim + i;
        c += static_cast<double>(a.weight[column]) * a.q[row * a.q_stride + column] * a.k[row * a.k_stride + column];
      }
      for (size_t e = 0; e < a.value_dim; ++e) {
        const size_t column = h * a.value_dim + e;
        const double o = a.o[row * a.o_stride + column];
        a.y[row * a.y_stride + column] = static_cast<float>(o + c * a.v[row * a.v_stride + column]);
      }
    }
  }
}

// RWKV-7: y = x + c (1 - sigmoid(l)) (z - x).
void Blend(const BlendArgs& a) {
  for (size_t row = 0; row < a.rows; ++row) {
    for (size_t i = 0; i < a.width; ++i) {
      const double x = a.x[row * a.x_stride + i], z = a.z == nullptr ? 0.0 : static_cast<double>(a.z[row * a.z_stride + i]);
      const double c = a.weight == nullptr ? 1.0 : static_cast<double>(a.weight[i]);
      const double part = c / (1.0 + std::exp(static_cast<double>(a.logits[row * a.logits_stride + i])));  // 1 - sigmoid
      a.y[row * a.y_stride + i] = static_cast<float>(x + part * (z - x));
    }
  }
}

}  // namespace tarn::reference
