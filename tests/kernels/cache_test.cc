// Attention over cached rows: every table against the reference, chunks against steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

struct Case {
  size_t tokens, queries, rows, key_dim, value_dim;
  float scale;
  Floats q;  // [C, G, d]
  Floats keys, values;

  Case(Random& random, size_t c, size_t g, size_t r, size_t d, size_t dv, float range)
      : tokens(c), queries(g), rows(r), key_dim(d), value_dim(dv), scale(1.0f / std::sqrt(static_cast<float>(d))) {
    q = random.Uniform(c * g * d, -range, range);
    keys = random.Uniform(r * d, -range, range);
    values = random.Uniform(r * dv, -1.0f, 1.0f);
  }
};

Floats Attend(const Kernels& table, const Case& c, Place place = Place::kEnd) {
  const size_t q_row = c.queries * c.key_dim, o_row = c.queries * c.value_dim;
  Buffer<float> q(Strided(c.q, q_row, q_row + 5), place), keys(c.keys, place), values(c.values, place);
  Buffer<float> o(StridedSize(c.tokens, o_row, o_row + 2), place), scratch(CacheScratch(c.tokens, c.key_dim), place);
  table.cache_attend({c.tokens, c.queries, c.rows, c.key_dim, c.value_dim, q.data(), q_row + 5, keys.data(), values.data(), c.scale,
                      o.data(), o_row + 2, scratch.data()});
  return Unstrided(o.values(), o_row, o_row + 2);
}

// A logit is off by delta = (d + 3) u scale sum|q k|, a probability relatively by 2 max delta (numerator and divisor), its
// exponentials and rescalings 4 per tile, and the sums over rows. That bounds the output by the same fraction of sum p|v|.
void Compare(const Case& c, const Floats& expected, const Floats& actual) {
  double largest = 0;  // |q||k| is at least sum|q k|
  for (size_t t = 0; t < c.tokens * c.queries; ++t) {
    for (size_t r = 0; r < c.rows; ++r) {
      double sum = 0;
      for (size_t x = 0; x < c.key_dim; ++x)
        sum += std::fabs(static_cast<double>(c.q[t * c.key_dim + x]) * c.keys[r * c.key_dim + x]);
      largest = std::fmax(largest, sum);
    }
  }
  const double delta = (static_cast<double>(c.key_dim) + 3) * kU * static_cast<double>(c.scale) * largest;
  const double rows = static_cast<double>(c.rows);
  const double u = 2 * delta + (2 * rows + 4 * (rows / 64 + 1) + 8) * kU;
  Case magnitude = c;
  magnitude.values = Abs(c.values);
  const Floats size = Attend(Reference(), magnitude);
  ExpectNear("o", expected, actual, [&](size_t i) { return u * size[i]; });
}

TEST(Cache, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t size : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8, 11}) {
        const size_t rows = 1 + (size * 13 + queries * 41) % 200;
        const Case c(random, 1, queries, rows, size, 1 + (size * 3) % 40, 2.0f);
        const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
        Compare(c, Attend(Reference(), c, place), Attend(kernels, c, place));
      }
    }
  });
}

TEST(Cache, ChunkOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (size_t tokens = 2; tokens <= 35; ++tokens) {
      for (const size_t past : {0, 1, 63, 64, 90}) {
        const Case c(random, tokens, 1 + tokens % 3, past + tokens, 1 + (tokens * 7) % 40, 1 + (tokens * 5) % 40, 2.0f);
        const Place place = past % 2 == 0 ? Place::kEnd : Place::kShifted;
        Compare(c, Attend(Reference(), c, place), Attend(kernels, c, place));
      }
    }
  });
}

// Row by row as the cache grows, and all at once.
TEST(Cache, ChunkEqualsSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    constexpr size_t past = 70, tokens = 64;
    const Case c(random, tokens, 2, past + tokens, 64, 64, 2.0f);
    Floats steps;
    for (size_t t = 0; t < tokens; ++t) {
      Case one = c;
      one.tokens = 1;
      one.rows = past + t + 1;
      const size_t row = c.queries * c.key_dim;
      one.q.assign(c.q.begin() + static_cast<ptrdiff_t>(t * row), c.q.begin() + static_cast<ptrdiff_t>((t + 1) * row));
      one.keys.resize(one.rows * c.key_dim);
      one.values.resize(one.rows * c.value_dim);
      for (const float value : Attend(kernels, one)) steps.push_back(value);
    }
    Compare(c, steps, Attend(kernels, c));
  });
}

// Logits of +-1e3, rising and falling along the rows: the maximum moves in every tile, or never.
TEST(Cache, LargeLogits) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (const float slope : {20.0f, -20.0f}) {
      for (const size_t tokens : {1, 9}) {
        Case c(random, tokens, 2, 150, 4, 3, 1.0f);
        for (size_t i = 0; i < c.q.size(); ++i) c.q[i] = i % 4 == 0 ? 1.0f : 0.0f;
        for (size_t r = 0; r < c.rows; ++r) c.keys[r * 4] = slope * (static_cast<float>(r) - 75.0f);
        Compare(c, Attend(Reference(), c), Attend(kernels, c));
      }
    }
  });
}

// Equal logits give the mean of the visible values.
TEST(Cache, ReferenceOfEqualLogitsIsTheMean) {
  Random random(5);
  Case c(random, 4, 1, 10, 3, 2, 1.0f);
  std::fill(c.q.begin(), c.q.end(), 0.0f);
  const Floats o = Attend(Reference(), c);
  for (size_t t = 0; t < 4; ++t) {
    for (size_t e = 0; e < 2; ++e) {
      double mean = 0;
      for (size_t r = 0; r < 7 + t; ++r) mean += c.values[r * 2 + e] / static_cast<double>(7 + t);
      EXPECT_NEAR(o[t * 2 + e], mean, 2 * kU);
    }
  }
}

}  // namespace
}  // namespace tarn::testing
