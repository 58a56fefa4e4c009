// Scores of all keys, their peaks, softmax and weighted sums: every table against f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

struct Case {
  size_t rows, keys, dim, q_gap, k_gap;
  Floats q, k;

  Case(Random& random, size_t r, size_t t, size_t d, size_t gap)
      : rows(r), keys(t), dim(d), q_gap(gap), k_gap(2 * gap), q(random.Uniform(r * d, -2, 2)), k(random.Uniform(t * d, -2, 2)) {}

  // The score, and the sum of the sizes of its terms.
  double Score(size_t row, size_t key, double* sizes) const {
    double sum = 0;
    *sizes = 0;
    for (size_t x = 0; x < dim; ++x) {
      const double term = static_cast<double>(q[row * dim + x]) * static_cast<double>(k[key * dim + x]);
      sum += term;
      *sizes += std::fabs(term);
    }
    return sum;
  }

  // f(args) with buffers that end at guard pages.
  template <typename F>
  void Run(Place place, const F& f) const {
    Buffer<float> q_rows(Strided(q, dim, dim + q_gap), place), k_rows(Strided(k, dim, dim + k_gap), place);
    Buffer<float> scratch(ScoreScratch(rows, dim), place);
    f(ScoreArgs{rows, keys, dim, q_rows.data(), dim + q_gap, k_rows.data(), dim + k_gap, scratch.data()});
  }
};

void CheckScores(const Case& c) {
  Floats expected, bound;
  for (size_t r = 0; r < c.rows; ++r) {
    for (size_t j = 0; j < c.keys; ++j) {
      double sizes;
      expected.push_back(static_cast<float>(c.Score(r, j, &sizes)));
      bound.push_back(static_cast<float>(static_cast<double>(c.dim + 2) * kU * sizes));
    }
  }
  ForEachTable([&](const Kernels& kernels) {
    for (const Place place : {Place::kEnd, Place::kShifted}) {
      c.Run(place, [&](const ScoreArgs& args) {
        Buffer<float> s(c.rows * c.keys, place);
        kernels.score_rows(args, s.data());
        ExpectNear("scores", expected, s.values(), [&](size_t i) { return static_cast<double>(bound[i]); });
      });
    }
  });
}

// A score is off by d u of its terms; the mean of T scores by that and by T u of their sizes, and a division.
void CheckPeaks(const Case& c) {
  Floats expected, bound;
  for (size_t r = 0; r < c.rows; ++r) {
    double top = -HUGE_VAL, sum = 0, all_sizes = 0, largest = 0;
    for (size_t j = 0; j < c.keys; ++j) {
      double sizes;
      const double score = c.Score(r, j, &sizes);
      top = std::max(top, score);
      sum += score;
      all_sizes += sizes;
      largest = std::max(largest, sizes);
    }
    const double count = static_cast<double>(c.keys), terms = static_cast<double>(c.dim);
    expected.push_back(static_cast<float>(top - sum / count));
    bound.push_back(static_cast<float>(kU * ((terms + 4) * largest + (terms + count + 4) * all_sizes / count)));
  }
  ForEachTable([&](const Kernels& kernels) {
    c.Run(Place::kEnd, [&](const ScoreArgs& args) {
      Buffer<float> measure(c.rows, Place::kEnd);
      kernels.score_peak(args, measure.data());
      ExpectNear("peaks", expected, measure.values(), [&](size_t i) { return static_cast<double>(bound[i]); });
    });
  });
}

TEST(Scores, EverySize) {
  Random random(1);
  for (const size_t n : Sizes()) {
    const Case c(random, 1 + n % 6, n, 1 + (n * 5) % 40, n % 3);
    CheckScores(c);
    CheckPeaks(c);
  }
}

TEST(Scores, SeveralTilesOfKeys) {
  Random random(2);
  for (const size_t keys : {63, 64, 65, 200}) {
    const Case c(random, 64, keys, 64, 1);
    CheckScores(c);
    CheckPeaks(c);
  }
}

// Equal queries have equal measures: what is chosen among them does not hang on a rounding.
TEST(Scores, EqualRowsHaveEqualPeaks) {
  Random random(3);
  Case c(random, 7, 100, 20, 0);
  for (size_t i = c.dim; i < c.q.size(); ++i) c.q[i] = c.q[i % c.dim];
  ForEachTable([&](const Kernels& kernels) {
    c.Run(Place::kEnd, [&](const ScoreArgs& args) {
      Floats measure(c.rows);
      kernels.score_peak(args, measure.data());
      ExpectEqual("peaks", Floats(c.rows, measure[0]), measure);
    });
  });
}

// p = e^x / sum e^x: x = scale * s has one rounding, of up to u |x|, and so has its distance from the maximum; then e^x has 2u, the
// sum of n terms (n + 2) u, and the quotient two roundings.
TEST(Scores, Softmax) {
  Random random(4);
  constexpr float kScale = 0.3f;
  for (const size_t n : Sizes()) {
    for (const float range : {3.0f, 1e3f}) {
      constexpr size_t kRows = 3;
      const Floats scores = random.Uniform(kRows * n, -range, range);
      Floats expected;
      for (size_t r = 0; r < kRows; ++r) {
        const auto row = scores.begin() + static_cast<ptrdiff_t>(r * n);
        const double top =
            static_cast<double>(kScale) * static_cast<double>(*std::max_element(row, row + static_cast<ptrdiff_t>(n)));
        double total = 0;
        const auto weight = [&](float s) { return std::exp(static_cast<double>(kScale) * static_cast<double>(s) - top); };
        for (size_t j = 0; j < n; ++j) total += weight(scores[r * n + j]);
        for (size_t j = 0; j < n; ++j) expected.push_back(static_cast<float>(weight(scores[r * n + j]) / total));
      }
      const double exponent = 4.0 * static_cast<double>(kScale * range);
      ForEachTable([&](const Kernels& kernels) {
        Buffer<float> p(scores, Place::kEnd);
        kernels.softmax_rows(kRows, n, kScale, p.data());
        ExpectNear("p", expected, p.values(), [&](size_t i) {
          return kU * (2 * exponent + static_cast<double>(n) + 10) * static_cast<double>(expected[i]) + 0x1p-125;
        });
      });
    }
  }
}

TEST(Scores, WeighedRows) {
  Random random(5);
  for (const size_t n : Sizes()) {
    const size_t rows = 1 + n % 6, dv = 1 + (n * 7) % 40;
    const Floats p = random.Uniform(rows * n, 0, 1), v = random.Uniform(n * dv, -1, 1);
    Floats expected, bound;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t e = 0; e < dv; ++e) {
        double sum = 0, sizes = 0;
        for (size_t j = 0; j < n; ++j) {
          const double term = static_cast<double>(p[r * n + j]) * static_cast<double>(v[j * dv + e]);
          sum += term;
          sizes += std::fabs(term);
        }
        expected.push_back(static_cast<float>(sum));
        bound.push_back(static_cast<float>(static_cast<double>(n + 2) * kU * sizes));
      }
    }
    ForEachTable([&](const Kernels& kernels) {
      Buffer<float> weights(p, Place::kEnd), values(Strided(v, dv, dv + 3), Place::kEnd),
          o(StridedSize(rows, dv, dv + 1), Place::kEnd);
      kernels.weigh_rows(rows, n, dv, weights.data(), values.data(), dv + 3, o.data(), dv + 1);
      ExpectNear("o", expected, Unstrided(o.values(), dv, dv + 1), [&](size_t i) { return static_cast<double>(bound[i]); });
    });
  }
}

}  // namespace
}  // namespace tarn::testing
