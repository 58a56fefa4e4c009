// The causal convolution of columns: the reference against the sum over the whole sequence, every table against the reference, and
// chunks against single tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr size_t kTokens = 11;

struct Case {
  Case(size_t n, size_t k, bool with_bias, bool with_silu, size_t m = 1)
      : width(n), mixes(m), taps(k), has_bias(with_bias), silu(with_silu), random(static_cast<uint32_t>(n * 100 + k)) {
    x = random.Uniform(kTokens * width, -2.0f, 2.0f);
    weight = random.Uniform(taps * all(), -1.0f, 1.0f);
    bias = random.Uniform(all(), -1.0f, 1.0f);
  }

  size_t all() const { return mixes * width; }

  // Both ends of the sequence in `state`; y of all tokens, read in chunks of `chunk`. Rows lie `gap` elements apart.
  Floats Run(const Kernels& table, size_t chunk, size_t gap, Place place, Floats* state) const {
    Buffer<float> in(Strided(x, width, width + gap), place), w(weight, place), b(bias, place), rows(*state, place);
    const size_t out_stride = all() + 2 * gap;
    Buffer<float> out(StridedSize(kTokens, all(), out_stride), place);
    for (size_t first = 0; first < kTokens; first += chunk) {
      const size_t tokens = std::min(chunk, kTokens - first);
      table.causal_conv({tokens, width, mixes, taps, in.data() + first * (width + gap), width + gap, w.data(),
                         has_bias ? b.data() : nullptr, silu, rows.data(), out.data() + first * out_stride, out_stride});
    }
    *state = rows.values();
    return Unstrided(out.values(), all(), out_stride);
  }

  // sum_j |weight_j x_j| + |bias| of an element of y, and the sum itself, from a sequence that begins with `state`.
  double Sum(const Floats& state, size_t token, size_t column, bool absolute) const {
    double sum = !has_bias ? 0.0 : absolute ? std::fabs(bias[column]) : static_cast<double>(bias[column]);
    for (size_t j = 0; j < taps; ++j) {
      const size_t row = token + j;  // of the state, then x
      const size_t of_x = column % width;
      const float value = row < taps - 1 ? state[row * width + of_x] : x[(row - (taps - 1)) * width + of_x];
      const double product = static_cast<double>(weight[j * all() + column]) * value;
      sum += absolute ? std::fabs(product) : product;
    }
    return sum;
  }

  size_t width, mixes, taps;
  bool has_bias, silu;
  mutable Random random;
  Floats x, weight, bias;
};

void ForEachCase(const std::function<void(const Case&)>& f) {
  for (const size_t width : Sizes()) {
    if (width > 100) continue;
    for (size_t taps = kMinConvTaps; taps <= kMaxConvTaps; ++taps) {
      f(Case(width, taps, (width + taps) % 2 == 0, taps % 3 != 0));
    }
    f(Case(width, 2, false, false, 6));
    f(Case(width, 3, true, true, 2));
  }
}

// One rounding to f32.
TEST(CausalConv, TheReferenceIsTheSum) {
  ForEachCase([](const Case& c) {
    const Floats begin = c.random.Uniform((c.taps - 1) * c.width, -2.0f, 2.0f);
    Floats state = begin;
    const Floats y = c.Run(Reference(), kTokens, 0, Place::kEnd, &state);
    for (size_t i = 0; i < y.size(); ++i) {
      const double sum = c.Sum(begin, i / c.all(), i % c.all(), false);
      const double expected = c.silu ? sum / (1.0 + std::exp(-sum)) : sum;
      EXPECT_NEAR(y[i], expected, 2 * kU * std::fabs(expected) + kTiny);
    }
    const size_t kept = std::min<size_t>(c.taps - 1, kTokens) * c.width;
    EXPECT_TRUE(std::equal(state.end() - static_cast<ptrdiff_t>(kept), state.end(), c.x.end() - static_cast<ptrdiff_t>(kept)));
  });
}

// taps products and a bias, each with a rounding; silu: its derivative is at most 1.1, its own roundings are 5.
TEST(CausalConv, TablesAgreeWithTheReference) {
  ForEachTable([](const Kernels& kernels) {
    ForEachCase([&](const Case& c) {
      const Floats begin = c.random.Uniform((c.taps - 1) * c.width, -2.0f, 2.0f);
      for (const size_t gap : {0, 3}) {
        for (const Place place : {Place::kEnd, Place::kShifted}) {
          Floats expected_state = begin, state = begin;
          const Floats expected = c.Run(Reference(), 4, gap, place, &expected_state);
          ExpectNear("y", expected, c.Run(kernels, 4, gap, place, &state), [&](size_t i) {
            const double sum = c.Sum(begin, i / c.all(), i % c.all(), true);
            return (1.1 * static_cast<double>(c.taps + 1) * sum + 6 * std::fabs(expected[i])) * kU + kTiny;
          });
          ExpectEqual("state", expected_state, state);
        }
      }
    });
  });
}

TEST(CausalConv, ChunksGiveTheBitsOfTokens) {
  ForEachTable([](const Kernels& kernels) {
    ForEachCase([&](const Case& c) {
      Floats one_state((c.taps - 1) * c.width, 0.0f);
      const Floats one = c.Run(kernels, 1, 0, Place::kEnd, &one_state);
      for (const size_t chunk : {2, 5, 11}) {
        Floats state((c.taps - 1) * c.width, 0.0f);
        ExpectEqual("y", one, c.Run(kernels, chunk, 0, Place::kEnd, &state));
        ExpectEqual("state", one_state, state);
      }
    });
  });
}

// What a NaN reaches: its own column, its own token and the taps - 1 behind it.
TEST(CausalConv, ANanStaysInItsColumn) {
  ForEachTable([](const Kernels& kernels) {
    Case c(5, 3, true, true);
    c.x[2 * c.width + 1] = std::nanf("");
    Floats state((c.taps - 1) * c.width, 0.0f);
    const Floats y = c.Run(kernels, kTokens, 0, Place::kEnd, &state);
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t token = i / c.width;
      EXPECT_EQ(std::isnan(y[i]), i % c.width == 1 && token >= 2 && token < 5) << i;
    }
  });
}

}  // namespace
}  // namespace tarn::testing
