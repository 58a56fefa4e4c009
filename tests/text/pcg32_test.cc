#include "runtime/text/pcg32.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tarn {
namespace {

TEST(Pcg32Test, PublishedOutputs) {
  // pcg32-demo of the reference implementation: pcg32_srandom(42, 54), round 1.
  const uint32_t kExpected[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e};
  Pcg32 random(42);
  for (const uint32_t expected : kExpected) EXPECT_EQ(random.Next(), expected);
}

TEST(Pcg32Test, DoublesAreTwoDrawsHighFirst) {
  Pcg32 random(42);
  EXPECT_EQ(random.NextDouble(), static_cast<double>((0xa15c02b7ull << 32 | 0x7b47f409u) >> 11) / 9007199254740992.0);
  EXPECT_EQ(random.NextDouble(), static_cast<double>((0xba1d3330ull << 32 | 0x83d2f293u) >> 11) / 9007199254740992.0);
}

TEST(Pcg32Test, DoublesLieInUnitInterval) {
  Pcg32 random(7);
  double low = 1;
  double high = 0;
  double sum = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.NextDouble();
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  EXPECT_NEAR(sum / kDraws, 0.5, 4 * 0.2887 / 316.2);  // four standard errors
}

TEST(Pcg32Test, StreamsDiffer) {
  Pcg32 a(42);
  Pcg32 b(42, 55);
  EXPECT_NE(a.Next(), b.Next());
}

}  // namespace
}  // namespace tarn
