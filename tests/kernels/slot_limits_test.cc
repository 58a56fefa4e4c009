// What all tables agree on about slot controls, by itself.
#include "kernels/slot_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// What the limits are there for: factors that share e^80, and a sum of 2^40 products with the largest weight, stay in f32's normal
// range, and so do their inverses.
TEST(SlotLimits, FactorsAreNormalNumbers) {
  const double largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::min();
  const double shared = std::exp(static_cast<double>(kSlotLogLimit) / 2), sum = static_cast<double>(kSlotSumLimit);
  EXPECT_LT(shared * shared * 1e3, largest);
  EXPECT_GT(1 / shared / shared, smallest);
  EXPECT_LT(sum * 0x1p40, largest);
  EXPECT_GT(1 / sum, smallest);
}

// c joins make 1/c of every member: b_i times all decays after it.
TEST(SlotLimits, EveryMemberHasTheSameShare) {
  constexpr size_t kMembers = 100;
  float members = 0.0f;
  std::vector<double> share;
  for (size_t c = 1; c <= kMembers; ++c) {
    const JoinedMean joined = JoinMean(members);
    members = joined.members;
    EXPECT_EQ(members, static_cast<float>(c));
    for (double& x : share) x *= static_cast<double>(joined.decay);
    share.push_back(static_cast<double>(joined.write));
    for (const double x : share) EXPECT_NEAR(x * static_cast<double>(c), 1.0, static_cast<double>(c) * kU);  // a rounding per join
  }
}

// 2^24 members are the most: the mean goes on moving by 2^-24.
TEST(SlotLimits, FullMeansKeepMoving) {
  const float full = static_cast<float>(kSlotMostMembers);
  EXPECT_EQ(full + 1.0f, full);
  EXPECT_EQ(JoinMean(full - 1.0f).members, full);
  const JoinedMean joined = JoinMean(full);
  EXPECT_EQ(joined.members, full);
  EXPECT_EQ(joined.decay, 1.0f - 0x1p-24f);
  EXPECT_NEAR(joined.write, 0x1p-24, 0x1p-24 * 0x1p-23);  // 1/(2^24 + 1)
}

}  // namespace
}  // namespace tarn::testing
