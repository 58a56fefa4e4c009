// Sequences that change places, against a copy of everything.
#include "runtime/interpreter/reorder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tarn {
namespace {

// More than one piece of the copy, and a rest.
constexpr size_t kBytes = 4096 + 100;

void ExpectReordered(const std::vector<uint32_t>& parents) {
  const size_t batch = parents.size();
  std::vector<uint8_t> state(batch * kBytes);
  uint32_t random = 1;
  for (uint8_t& byte : state) byte = static_cast<uint8_t>((random = random * 1664525u + 1013904223u) >> 24);
  std::vector<uint8_t> wanted(state.size());
  for (size_t i = 0; i < batch; ++i) {
    std::copy_n(state.begin() + static_cast<ptrdiff_t>(parents[i] * kBytes), kBytes,
                wanted.begin() + static_cast<ptrdiff_t>(i * kBytes));
  }
  std::vector<Reordering::Move> moves(Reordering::MaxMoves(batch));
  std::vector<uint32_t> counts(batch);
  Reordering reordering({moves.data(), moves.size()}, {counts.data(), counts.size()});
  reordering.Plan(parents.data());
  reordering.Apply(state.data(), kBytes);
  EXPECT_EQ(state, wanted) << ::testing::PrintToString(parents);
}

TEST(Reorder, EveryMapOfUpToFiveSequences) {
  for (uint32_t batch = 1; batch <= 5; ++batch) {
    std::vector<uint32_t> parents(batch, 0);
    for (;;) {
      ExpectReordered(parents);
      uint32_t digit = 0;
      while (digit < batch && ++parents[digit] == batch) parents[digit++] = 0;
      if (digit == batch) break;
    }
  }
}

TEST(Reorder, CirclesChainsAndForksAtOnce) {
  ExpectReordered({1, 2, 0, 4, 3, 5, 5, 6, 7, 7, 0});
  std::vector<uint32_t> reversed(64);
  for (uint32_t i = 0; i < 64; ++i) reversed[i] = 63 - i;
  ExpectReordered(reversed);
}

}  // namespace
}  // namespace tarn
