#include "tools/convert/checkpoint/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tarn::convert {
namespace {

std::vector<float> Draw(uint64_t seed, const WeightSpec& spec) {
  std::vector<float> values(ElementCount(spec.shape));
  RandomWeights(seed).Read(spec, 0, values.size(), values.data());
  return values;
}

// Share of values whose magnitude is above `limit`.
double Above(const std::vector<float>& values, double limit) {
  size_t count = 0;
  for (const float x : values) count += std::fabs(x) > limit ? 1 : 0;
  return static_cast<double>(count) / static_cast<double>(values.size());
}

TEST(RandomWeights, IsTheNormalDistribution) {
  const std::vector<float> x = Draw(3, {"x", {1000, 1000}, Init::kNormal});
  double sum = 0, squares = 0, fourth = 0;
  for (const double v : x) {
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
  }
  const auto n = static_cast<double>(x.size());
  // Five standard errors of a million draws.
  EXPECT_NEAR(sum / n, 0, 5e-3);
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0) * 1e-3);
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0) * 1e-3);
  for (const double limit : {0.1, 0.5, 1.0, 2.0, 3.0, 4.0}) {
    const double p = std::erfc(limit * std::sqrt(0.5));
    EXPECT_NEAR(Above(x, limit), p, 5 * std::sqrt(p / n)) << limit;
  }
}

TEST(RandomWeights, ScalesAndConstants) {
  const auto variance = [](const std::vector<float>& x) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    return squares / static_cast<double>(x.size());
  };
  EXPECT_NEAR(variance(Draw(1, {"w", {500, 64}, Init::kLinear})), 1.0 / 64, 0.05 / 64);
  EXPECT_NEAR(variance(Draw(1, {"w", {500, 16, 4}, Init::kConv})), 1.0 / 64, 0.05 / 64);
  EXPECT_NEAR(variance(Draw(1, {"w", {500, 64}, Init::kControl})), 4.0 / 64, 0.2 / 64);
  EXPECT_EQ(Draw(1, {"w", {2}, Init::kZero}), (std::vector<float>{0, 0}));
  EXPECT_EQ(Draw(1, {"w", {2}, Init::kOne}), (std::vector<float>{1, 1}));
  EXPECT_EQ(Draw(1, {"w", {5}, Init::kGateBias}), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(Draw(1, {"w", {1}, Init::kGateBias}), (std::vector<float>{1}));
}

TEST(RandomWeights, DependsOnSeedAndNameAlone) {
  const WeightSpec spec = {"model.layers.0.attn.q_proj.weight", {7, 11}, Init::kLinear};
  const std::vector<float> whole = Draw(5, spec);
  std::vector<float> pieces(whole.size());
  for (size_t at = whole.size(); at-- > 0;) RandomWeights(5).Read(spec, at, 1, &pieces[at]);
  EXPECT_EQ(pieces, whole);
  EXPECT_NE(Draw(6, spec), whole);
  EXPECT_NE(Draw(5, {"model.layers.1.attn.q_proj.weight", {7, 11}, Init::kLinear}), whole);
}

// These numbers are part of what a seed means: they are the same on every machine and in every version.
TEST(RandomWeights, KnownValues) {
  const std::vector<float> x = Draw(1, {"tarn", {6}, Init::kNormal});
  const std::vector<float> known = {-0x1.10ccfcp-5f, -0x1.2647ap-2f, -0x1.3d35aap-1f,
                                    -0x1.61769cp-3f, 0x1.fe4ef4p-2f, -0x1.876064p-1f};
  EXPECT_EQ(x, known);
}

}  // namespace
}  // namespace tarn::convert
