// Attention over explicit rows (MATH F3, 1.1).
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

constexpr size_t kBlock = 64;  // elements of o that are summed in f64 at a time

bool Visible(const CacheBlock& b, size_t row, size_t token) {
  const int64_t shift = static_cast<int64_t>(row) * b.step;
  const int64_t t = static_cast<int64_t>(token);
  return b.from + shift <= t && t < b.until + shift;
}

double Logit(const CacheArgs& a, const CacheBlock& b, const float* q, size_t row) {
  double sum = 0.0;
  for (size_t x = 0; x < a.key_dim; ++x) {
    sum += static_cast<double>(q[x]) * At({b.type, b.keys, b.key_scales}, b.key_stride, row, x);
  }
  const double logit = static_cast<double>(a.scale) * sum, cap = a.soft_cap;
  return cap > 0.0 ? cap * std::tanh(logit / cap) : logit;
}

// f(block, row) for every row that the token sees.
template <typename F>
void ForEachVisible(const CacheArgs& a, size_t token, const F& f) {
  for (size_t i = 0; i < a.block_count; ++i) {
    for (size_t r = 0; r < a.blocks[i].rows; ++r) {
      if (Visible(a.blocks[i], r, token)) f(a.blocks[i], r);
    }
  }
}

// o = sum over visible rows of softmax(scale q.k_r) v_r, in two passes: the maximum, then the sums.
void Attend(const CacheArgs& a, size_t token, const float* q, float* o) {
  double top = -HUGE_VAL;
  ForEachVisible(a, token, [&](const CacheBlock& b, size_t r) { top = std::fmax(top, Logit(a, b, q, r)); });
  for (size_t first = 0; first < a.value_dim; first += kBlock) {
    const size_t count = std::min(kBlock, a.value_dim - first);
    double sum[kBlock] = {};
    double total = 0.0;
    ForEachVisible(a, token, [&](const CacheBlock& b, size_t r) {
      const double p = std::exp(Logit(a, b, q, r) - top);
      total += p;
      for (size_t e = 0; e < count; ++e) sum[e] += p * At({b.type, b.values, b.value_scales}, b.value_stride, r, first + e);
    });
    for (size_t e = 0; e < count; ++e) o[first + e] = total == 0.0 ? 0.0f : static_cast<float>(sum[e] / total);
  }
}

}  // namespace

void CacheAttend(const CacheArgs& a) {
  for (size_t t = 0; t < a.tokens; ++t) {
    for (size_t g = 0; g < a.queries; ++g) {
      Attend(a, t, a.q + t * a.q_stride + g * a.key_dim, a.o + t * a.o_token_stride + g * a.value_dim);
    }
  }
}

}  // namespace tarn::reference
