// Nearest codes: every table against the definition.
#include <gtest/gtest.h>

#include <bitset>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

using Codes = std::vector<uint64_t>;
using Numbers = std::vector<uint32_t>;

Codes RandomCodes(uint32_t seed, size_t n) {
  std::mt19937_64 engine(seed);
  Codes codes(n);
  for (uint64_t& code : codes) code = engine();
  return codes;
}

Numbers Nearest(const Codes& codes, const Codes& centers) {
  Numbers nearest;
  for (const uint64_t code : codes) {
    uint32_t best = 0;
    for (uint32_t j = 0; j < centers.size(); ++j) {
      if (std::bitset<64>(code ^ centers[j]).count() < std::bitset<64>(code ^ centers[best]).count()) best = j;
    }
    nearest.push_back(best);
  }
  return nearest;
}

void CheckEveryTable(const Codes& codes, const Codes& centers) {
  const Numbers expected = Nearest(codes, centers);
  ForEachTable([&](const Kernels& kernels) {
    for (const Place place : {Place::kEnd, Place::kShifted}) {
      Buffer<uint64_t> x(codes, place), c(centers, place);
      Buffer<uint32_t> nearest(codes.size(), place);
      kernels.nearest_code(x.size(), x.data(), c.size(), c.data(), nearest.data());
      EXPECT_EQ(expected, nearest.values());
    }
  });
}

TEST(Hamming, EverySize) {
  for (size_t n = 1; n <= 35; ++n) CheckEveryTable(RandomCodes(1, n), RandomCodes(2, 1 + n % 7));
  CheckEveryTable(RandomCodes(3, 200), RandomCodes(4, 100));
}

// Few bits: many centers are equally near, and some are the same.
TEST(Hamming, TiesGoToTheLowerNumber) {
  Codes codes = RandomCodes(5, 100), centers = RandomCodes(6, 20);
  for (uint64_t& code : codes) code &= 7;
  for (uint64_t& center : centers) center &= 7;
  CheckEveryTable(codes, centers);
}

// The largest distance there is, and none.
TEST(Hamming, AllBitsDiffer) { CheckEveryTable({0, ~uint64_t{0}, 0, 1}, {~uint64_t{0}, ~uint64_t{0}}); }

}  // namespace
}  // namespace tarn::testing
