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

double Bias(const DistanceBias& bias, size_t head, int64_t distance) {
  double b = 0.0;
  if (bias.table != nullptr) {
    const int64_t column = std::min(std::max<int64_t>(distance + bias.behind - 1, 0), static_cast<int64_t>(bias.columns) - 1);
    b = static_cast<double>(bias.table[head * bias.columns + static_cast<size_t>(column)]);
  }
  if (bias.slopes != nullptr) b -= static_cast<double>(bias.slopes[head]) * std::fabs(static_cast<double>(distance));
  return b;
}

// A query head of a token.
struct Query {
  size_t token, head;
  const float* q;
};

double Logit(const CacheArgs& a, const CacheBlock& b, const Query& query, size_t row) {
  double sum = 0.0;
  for (size_t x = 0; x < a.key_dim; ++x) {
    sum += static_cast<double>(query.q[x]) * At({b.type, b.keys, b.key_scales}, b.key_stride, row, x);
  }
  const double cap = a.soft_cap;
  double logit = static_cast<double>(a.scale) * sum;
  if (cap > 0.0) logit = cap * std::tanh(logit / cap);
  if (a.bias == nullptr) return logit;
  return logit + Bias(*a.bias, query.head, b.position + static_cast<int64_t>(row) - static_cast<int64_t>(query.token));
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
void Attend(const CacheArgs& a, const Query& query, float* o) {
  double top = -HUGE_VAL;
  ForEachVisible(a, query.token, [&](const CacheBlock& b, size_t r) { top = std::fmax(top, Logit(a, b, query, r)); });
  for (size_t first = 0; first < a.value_dim; first += kBlock) {
    const size_t count = std::min(kBlock, a.value_dim - first);
    double sum[kBlock] = {};
    double total = 0.0;
    ForEachVisible(a, query.token, [&](const CacheBlock& b, size_t r) {
      const double p = std::exp(Logit(a, b, query, r) - top);
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
      Attend(a, {t, g, a.q + t * a.q_stride + g * a.key_dim}, a.o + t * a.o_token_stride + g * a.value_dim);
    }
  }
}

}  // namespace tarn::reference
