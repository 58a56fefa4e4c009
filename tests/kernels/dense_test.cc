// Portable dense layers and the quantization of their inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// A sum of `in` products, the bias, the oracle's rounding.
TEST(Dense, F32) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t in : Sizes()) {
      const size_t out = 1 + in % 9, rows = 1 + in % 4, x_stride = in + in % 2, y_stride = out + 2;
      const Floats x = random.Uniform(rows * in, -2.0f, 2.0f), w = random.Uniform(out * in, -1.0f, 1.0f);
      const Floats b = random.Uniform(out, -1.0f, 1.0f);
      for (const bool biased : {false, true}) {
        const auto run = [&](const Kernels& table, const Floats& xs, const Floats& ws, const Floats& bs) {
          Buffer<float> input(Strided(xs, in, x_stride), Place::kEnd), weight(ws, Place::kEnd), bias(bs, Place::kEnd);
          Buffer<float> y(StridedSize(rows, out, y_stride), Place::kEnd);
          table.dense_f32(rows, in, out, input.data(), x_stride, weight.data(), biased ? bias.data() : nullptr, y.data(), y_stride);
          return Unstrided(y.values(), out, y_stride);
        };
        const Floats size = run(Reference(), Abs(x), Abs(w), Abs(b));
        ExpectNear("y", run(Reference(), x, w, b), run(kernels, x, w, b),
                   [&](size_t i) { return (static_cast<double>(in) + 2) * kU * size[i]; });
      }
    }
  });
}

struct Quantized {
  std::vector<int8_t> q;
  float scale;
  int32_t zero_point;
};

Quantized Quantize(const Kernels& table, const Floats& x, Place place) {
  Buffer<float> in(x, place);
  Buffer<int8_t> out(x.size(), place);
  Quantized result;
  table.quantize_qd8(x.size(), in.data(), out.data(), &result.scale, &result.zero_point);
  result.q = out.values();
  return result;
}

// Every table rounds the same f32 products: equal, not near.
TEST(Dense, QuantizationIsTheSameInEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const size_t n : Sizes()) {
      for (int kind = 0; kind < 6; ++kind) {
        Floats x = random.Uniform(n, kind == 1 ? 0.5f : -3.0f, kind == 2 ? -0.5f : 3.0f);
        if (kind == 3) std::fill(x.begin(), x.end(), 0.0f);
        if (kind == 4) std::fill(x.begin(), x.end(), 1e-40f);
        if (kind == 5) x[n / 2] = 1e30f;
        const Place place = n % 2 == 0 ? Place::kEnd : Place::kShifted;
        const Quantized expected = Quantize(Reference(), x, place), actual = Quantize(kernels, x, place);
        EXPECT_EQ(expected.scale, actual.scale) << "kind " << kind << " n " << n;
        EXPECT_EQ(expected.zero_point, actual.zero_point) << "kind " << kind << " n " << n;
        EXPECT_EQ(expected.q, actual.q) << "kind " << kind << " n " << n;
      }
    }
  });
}

// An element is at most half a step from what it is read back as, and one step where the zero point was nudged; zero stays zero.
TEST(Dense, QuantizationIsWithinOneStep) {
  Random random(3);
  for (const size_t n : Sizes()) {
    Floats x = random.Uniform(n, -1.0f, 3.0f);
    x[0] = 0.0f;
    const Quantized result = Quantize(Reference(), x, Place::kEnd);
    EXPECT_EQ(result.q[0], result.zero_point);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_LE(std::fabs(result.scale * static_cast<float>(result.q[i] - result.zero_point) - x[i]), 1.001f * result.scale);
    }
  }
}

// The sum is exact; its conversion, the scale, their product and the bias round once each, the oracle once.
TEST(Dense, Qd8Qc8w) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (const size_t in : Sizes()) {
      for (const int32_t zero_point : {-128, 0, 127}) {
        const size_t out = 1 + in % 9;
        std::vector<int8_t> q(in), w(out * in);
        for (int8_t& value : q) value = static_cast<int8_t>(random.Uniform(-128.0f, 127.9f));
        for (int8_t& value : w) value = static_cast<int8_t>(random.Uniform(-127.0f, 127.9f));
        std::fill(q.begin(), q.begin() + static_cast<ptrdiff_t>(in / 2), static_cast<int8_t>(-128));  // the extremes, side by side
        std::fill(w.begin(), w.begin() + static_cast<ptrdiff_t>(in / 2), static_cast<int8_t>(127));
        const Floats scales = random.Uniform(out, 0.01f, 0.02f), b = random.Uniform(out, -1.0f, 1.0f);
        const auto run = [&](const Kernels& table, bool biased) {
          Buffer<int8_t> input(q, Place::kEnd), weight(w, Place::kEnd);
          Buffer<float> scale(scales, Place::kEnd), bias(b, Place::kEnd), y(out, Place::kEnd);
          table.dense_qd8_qc8w(in, out, input.data(), 0.013f, zero_point, weight.data(), scale.data(),
                               biased ? bias.data() : nullptr, y.data());
          return y.values();
        };
        for (const bool biased : {false, true}) {
          const Floats expected = run(Reference(), biased);
          ExpectNear("y", expected, run(kernels, biased),
                     [&](size_t i) { return 5 * kU * (std::fabs(expected[i]) + (biased ? 2 * std::fabs(b[i]) : 0.0f)); });
        }
      }
    }
  });
}

// The widest sum of the contract: 66,051 products of 255 * 127 stay inside i32.
TEST(Dense, Qd8Qc8wAtTheLimitOfItsAccumulator) {
  constexpr size_t kIn = 66051;
  static_assert(int64_t{255} * 127 * kIn <= std::numeric_limits<int32_t>::max());
  const std::vector<int8_t> q(kIn, 127), w(kIn, 127);
  ForEachTable([&](const Kernels& kernels) {
    const float weight_scale = 1.0f;
    float y = 0.0f;
    kernels.dense_qd8_qc8w(kIn, 1, q.data(), 1.0f, -128, w.data(), &weight_scale, nullptr, &y);
    EXPECT_EQ(y, static_cast<float>(255 * 127 * static_cast<int32_t>(kIn)));
  });
}

}  // namespace
}  // namespace tarn::testing
