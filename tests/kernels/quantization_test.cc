// Scales and zero points by themselves, against values that the definition gives in exact numbers. Their bits against XNNPACK's own
// operator: xnnpack_quantize_test.cc.
#include "kernels/quantization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kMax = std::numeric_limits<float>::max();

void ExpectRow(float low, float high, float scale, int32_t zero_point) {
  const Qdu8Row row = ChooseQdu8(low, high);
  EXPECT_EQ(row.params.scale, scale) << low << " to " << high;
  EXPECT_EQ(row.params.zero_point, zero_point) << low << " to " << high;
  EXPECT_EQ(row.inverse, 1.0f / scale) << low << " to " << high;
}

// 255 steps of a power of two, which no operation rounds: integers decide. 0 is in every range.
TEST(Quantization, RangesOf255Steps) {
  for (const float step : {0x1p-40f, 0.25f, 1.0f, 0x1p100f}) {
    for (int32_t below = 0; below <= 255; ++below) {
      ExpectRow(-step * static_cast<float>(below), step * static_cast<float>(255 - below), step, below);
    }
    ExpectRow(step * 3, step * 255, step, 0);
    ExpectRow(-step * 255, -step * 3, step, 255);
  }
}

// A zero point between two integers is rounded from the end of the range that lies further from 0; it takes both ends to within
// half a step, and 0 exactly.
TEST(Quantization, EndsAreWithinHalfAStep) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const float low = -random.Uniform(0.0f, 3.0f), high = random.Uniform(0.001f, 3.0f);
    const Qdu8Row row = ChooseQdu8(low, high);
    const double range = static_cast<double>(high) - static_cast<double>(low), scale = static_cast<double>(row.params.scale);
    EXPECT_NEAR(scale, range / 255, 4 * kU * range / 255);  // three roundings
    ASSERT_GE(row.params.zero_point, 0);
    ASSERT_LE(row.params.zero_point, 255);
    const double error = 0.5 + 255 * 8 * kU;
    EXPECT_NEAR(static_cast<double>(low) / scale, -row.params.zero_point, error) << low << " to " << high;
    EXPECT_NEAR(static_cast<double>(high) / scale, 255 - row.params.zero_point, error) << low << " to " << high;
  }
}

// No range, or one whose steps f32 cannot count: as if it were 255 wide, so that everything becomes 0, whatever the zero point is.
TEST(Quantization, RangesThatAreTooSmall) {
  for (const float size : {0.0f, 1e-45f, 1e-37f}) {
    EXPECT_EQ(ChooseQdu8(-size, size).params.scale, 1.0f) << size;
    EXPECT_EQ(ChooseQdu8(-size, size).inverse, 1.0f) << size;
  }
}

TEST(Quantization, RangesThatAreNotFinite) {
  const auto expect_nan = [](float low, float high) {
    EXPECT_TRUE(std::isnan(ChooseQdu8(low, high).params.scale)) << low << " to " << high;
  };
  expect_nan(kNan, kNan);
  expect_nan(kNan, 1.0f);
  expect_nan(-1.0f, kNan);
  expect_nan(-HUGE_VALF, 1.0f);
  expect_nan(-1.0f, HUGE_VALF);
  expect_nan(-kMax, kMax);
}

TEST(Quantization, StoredRows) {
  for (const float step : {0x1p-100f, 0.5f, 1.0f, 0x1p120f}) {
    EXPECT_EQ(ChooseI8(127 * step).scale, step);
    EXPECT_EQ(ChooseI8(127 * step).inverse, 1.0f / step);
  }
  Random random(2);
  for (int i = 0; i < 10000; ++i) {
    const double largest = std::ldexp(static_cast<double>(random.Uniform(0.5f, 1.0f)), i % 200 - 100);
    const I8Row row = ChooseI8(static_cast<float>(largest));
    EXPECT_NEAR(row.scale, largest / 127, kU * largest / 127);
    EXPECT_NEAR(row.inverse, 127 / largest, kU * 127 / largest);
  }
  for (const float size : {0.0f, 1e-45f, 3e-37f}) {
    EXPECT_EQ(ChooseI8(size).scale, 0.0f);
    EXPECT_EQ(ChooseI8(size).inverse, 0.0f);
  }
  for (const float size : {HUGE_VALF, kNan}) {
    EXPECT_TRUE(std::isnan(ChooseI8(size).scale));
    EXPECT_EQ(ChooseI8(size).inverse, 0.0f);
  }
}

}  // namespace
}  // namespace tarn::testing
