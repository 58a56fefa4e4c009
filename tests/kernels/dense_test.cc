// Portable dense layers with f32 and f16 weights.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

// The same; weights are exact in f32.
TEST(Dense, F16) {
  ForEachTable([](const Kernels& kernels) {
    Random random(5);
    for (const size_t in : Sizes()) {
      const size_t out = 1 + in % 9, rows = 1 + in % 6, x_stride = in + in % 2, y_stride = out + 2;
      const Floats x = random.Uniform(rows * in, -2.0f, 2.0f), b = random.Uniform(out, -1.0f, 1.0f);
      std::vector<uint16_t> w(out * in), sizes(out * in);
      Reference().f32_to_f16(w.size(), random.Uniform(w.size(), -1.0f, 1.0f).data(), w.data());
      for (size_t i = 0; i < w.size(); ++i) sizes[i] = w[i] & 0x7FFF;
      for (const bool biased : {false, true}) {
        const auto run = [&](const Kernels& table, const Floats& xs, const std::vector<uint16_t>& ws, const Floats& bs) {
          Buffer<float> input(Strided(xs, in, x_stride), Place::kEnd), bias(bs, Place::kEnd);
          Buffer<uint16_t> weight(ws, in % 2 == 0 ? Place::kEnd : Place::kShifted);
          Buffer<float> y(StridedSize(rows, out, y_stride), Place::kEnd);
          table.dense_f16(rows, in, out, input.data(), x_stride, weight.data(), biased ? bias.data() : nullptr, y.data(), y_stride);
          return Unstrided(y.values(), out, y_stride);
        };
        const Floats size = run(Reference(), Abs(x), sizes, Abs(b));
        ExpectNear("y", run(Reference(), x, w, b), run(kernels, x, w, b),
                   [&](size_t i) { return (static_cast<double>(in) + 2) * kU * size[i]; });
      }
    }
  });
}

// Finite f16, against a row that picks one of them: converted exactly, denormals too. (Highway reads infinity as 65536 on CPUs that
// have no such conversion.)
TEST(Dense, F16WeightsAreConvertedExactly) {
  ForEachTable([](const Kernels& kernels) {
    for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
      if ((bits & 0x7C00) == 0x7C00) continue;
      const uint16_t w[3] = {0x3C00, static_cast<uint16_t>(bits), 0xBC00};
      const float x[3] = {0.0f, 1.0f, 0.0f};
      float expected, actual;
      Reference().dense_f16(1, 3, 1, x, 3, w, nullptr, &expected, 1);
      kernels.dense_f16(1, 3, 1, x, 3, w, nullptr, &actual, 1);
      if (std::fabs(expected) < 0x1p-14f) {
        EXPECT_NEAR(expected, actual, kFlushed * 2) << bits;
      } else {
        EXPECT_EQ(expected, actual) << bits;
      }
    }
  });
}

// What is not a number comes out as none, in its own row and output only.
TEST(Dense, SpecialValuesStayInTheirRowAndOutput) {
  ForEachTable([](const Kernels& kernels) {
    constexpr size_t kIn = 37, kOut = 6, kRows = 5;
    Floats x(kRows * kIn, 1.0f), w(kOut * kIn, 1.0f), y(kRows * kOut);
    x[1 * kIn + 36] = std::nanf("");
    x[3 * kIn + 2] = HUGE_VALF;
    w[4 * kIn + 33] = -HUGE_VALF;
    kernels.dense_f32(kRows, kIn, kOut, x.data(), kIn, w.data(), nullptr, y.data(), kOut);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t o = 0; o < kOut; ++o) {
        const float value = y[r * kOut + o];
        if (r == 1 || (r == 3 && o == 4)) {
          EXPECT_TRUE(std::isnan(value)) << r << " " << o;
        } else {
          EXPECT_EQ(value, r == 3 ? HUGE_VALF : o == 4 ? -HUGE_VALF : 37.0f) << r << " " << o;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
