// Attention over explicit rows (MATH F3, 1.1).
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

constexpr size_t kBlock = 64;  // elements of o that are summed in f64 at a time

double Logit(const CacheArgs& a, const float* q, size_t row) {
  double sum = 0.0;
  for (size_t x = 0; x < a.key_dim; ++x) sum += static_cast<double>(q[x]) * a.keys[row * a.key_dim + x];
  return static_cast<double>(a.scale) * sum;
}

// o = sum over rows < visible of softmax(scale q.k_r) v_r, in two passes: the maximum, then the sums.
void Attend(const CacheArgs& a, const float* q, size_t visible, float* o) {
  double top = -HUGE_VAL;
  for (size_t r = 0; r < visible; ++r) top = std::fmax(top, Logit(a, q, r));
  for (size_t first = 0; first < a.value_dim; first += kBlock) {
    const size_t count = std::min(kBlock, a.value_dim - first);
    double sum[kBlock] = {};
    double total = 0.0;
    for (size_t r = 0; r < visible; ++r) {
      const double p = std::exp(Logit(a, q, r) - top);
      total += p;
      for (size_t e = 0; e < count; ++e) sum[e] += p * a.values[r * a.value_dim + first + e];
    }
    for (size_t e = 0; e < count; ++e) o[first + e] = static_cast<float>(sum[e] / total);
  }
}

}  // namespace

void CacheAttend(const CacheArgs& a) {
  for (size_t t = 0; t < a.tokens; ++t) {
    for (size_t g = 0; g < a.queries; ++g) {
      Attend(a, a.q + t * a.q_stride + g * a.key_dim, a.rows - a.tokens + t + 1, a.o + t * a.o_token_stride + g * a.value_dim);
    }
  }
}

}  // namespace tarn::reference
