#include "tools/convert/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/convert/random_weights.h"

namespace tarn::convert {
namespace {

// |w - s q| <= s / 2 up to the rounding of f32 in w / s.
void ExpectBound(const std::vector<float>& w) {
  std::vector<int8_t> q(w.size());
  const float scale = QuantizeRow(w.data(), w.size(), q.data());
  ASSERT_GT(scale, 0.0f);
  ASSERT_TRUE(std::isfinite(scale));
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_GE(q[i], -127);
    const double error = std::fabs(static_cast<double>(w[i]) - static_cast<double>(scale) * q[i]);
    EXPECT_LE(error, scale * (0.5 + 127 * 1.2e-7)) << w[i];
  }
}

TEST(Quantize, ErrorIsAtMostHalfAStep) {
  for (const double magnitude : {1e-30, 1e-3, 1.0, 1e30}) {
    std::vector<float> w(1000);
    RandomWeights(7).Read({"w", {1000}, Init::kNormal}, 0, w.size(), w.data());
    for (float& x : w) x *= static_cast<float>(magnitude);
    ExpectBound(w);
  }
}

TEST(Quantize, TheLargestElementIsExact) {
  const std::vector<float> w = {0.5f, -2.0f, 1.0f};
  std::vector<int8_t> q(3);
  EXPECT_EQ(QuantizeRow(w.data(), 3, q.data()), 2.0f / 127.0f);
  EXPECT_EQ(q, (std::vector<int8_t>{32, -127, 64}));
}

TEST(Quantize, RowsWithoutSize) {
  const std::vector<float> zeros(5, 0.0f);
  std::vector<int8_t> q(5, 1);
  EXPECT_EQ(QuantizeRow(zeros.data(), 5, q.data()), 1.0f);
  EXPECT_EQ(q, std::vector<int8_t>(5, 0));
  ExpectBound({std::numeric_limits<float>::denorm_min(), 0});
  ExpectBound({std::numeric_limits<float>::min(), -std::numeric_limits<float>::min() / 2});
  ExpectBound({std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()});
}

}  // namespace
}  // namespace tarn::convert
