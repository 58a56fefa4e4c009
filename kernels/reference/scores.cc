// Scores of all keys (MATH 1.9.1, 1.9.2).
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

double Score(const ScoreArgs& a, size_t row, size_t key) {
  double sum = 0.0;
  for (size_t x = 0; x < a.key_dim; ++x) {
    sum += static_cast<double>(a.q[row * a.q_stride + x]) * static_cast<double>(a.k[key * a.k_stride + x]);
  }
  return sum;
}

}  // namespace

void ScoreRows(const ScoreArgs& a, float* s) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.keys; ++j) s[r * a.keys + j] = static_cast<float>(Score(a, r, j));
  }
}

void ScorePeak(const ScoreArgs& a, float* measure) {
  for (size_t r = 0; r < a.rows; ++r) {
    double top = -HUGE_VAL, sum = 0.0;
    for (size_t j = 0; j < a.keys; ++j) {
      top = std::fmax(top, Score(a, r, j));
      sum += Score(a, r, j);
    }
    measure[r] = static_cast<float>(top - sum / static_cast<double>(a.keys));
  }
}

void SoftmaxRows(size_t rows, size_t n, float scale, float* p) {
  for (float* row = p; row != p + rows * n; row += n) {
    double top = -HUGE_VAL, total = 0.0;
    for (size_t j = 0; j < n; ++j) top = std::fmax(top, static_cast<double>(scale) * static_cast<double>(row[j]));
    const auto weight = [&](float s) { return std::exp(static_cast<double>(scale) * static_cast<double>(s) - top); };
    for (size_t j = 0; j < n; ++j) total += weight(row[j]);
    for (size_t j = 0; j < n; ++j) row[j] = static_cast<float>(weight(row[j]) / total);
  }
}

void WeighRows(size_t rows, size_t keys, size_t value_dim, const float* p, const float* v, size_t v_stride, float* o,
               size_t o_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t e = 0; e < value_dim; ++e) {
      double sum = 0.0;
      for (size_t j = 0; j < keys; ++j) sum += static_cast<double>(p[r * keys + j]) * static_cast<double>(v[j * v_stride + e]);
      o[r * o_stride + e] = static_cast<float>(sum);
    }
  }
}

}  // namespace tarn::reference
