// Compact snapshots: matrices of f32 states are rounded, everything else is as it was, and what lies is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/session/snapshot_format.h"
#include "tests/session/snapshot_testing.h"
#include "tests/support/loaded.h"

namespace tarn {
namespace {

using snapshot_test::Bytes;
using snapshot_test::ExpectRefused;
using snapshot_test::Feed;
using snapshot_test::kHeaderBytes;
using snapshot_test::Rehash;
using snapshot_test::Restore;
using snapshot_test::Save;
using test::CausalCase;
using test::Loaded;
using test::SessionPointer;

// All states, as a snapshot has them.
Bytes States(const Bytes& snapshot) {
  const Result<SnapshotHeader> header = ReadSnapshotHeader({snapshot.data(), snapshot.size()});
  EXPECT_TRUE(header.ok() && CheckSnapshotMap(header.value(), snapshot.data()).ok());
  Bytes states(static_cast<size_t>(header.value().state_bytes));
  for (size_t at = 0; at < states.size(); at += 100) {  // pieces that begin within blocks
    const Span<uint8_t> part(states.data() + at, std::min<size_t>(100, states.size() - at));
    EXPECT_TRUE(ReadSnapshotStates(header.value(), snapshot.data(), at, part).ok());
  }
  return states;
}

// Each block as it was, or 16 numbers that are off by half a step of the largest at most, and by the rounding of f32 (scale,
// quotient and product: three times 2^-24 of the number, below 1e-4 of half a step). Returns how many are rounded.
size_t ExpectNear(const Bytes& exact, const Bytes& rounded) {
  size_t count = 0;
  EXPECT_EQ(exact.size(), rounded.size());
  for (size_t at = 0; at < exact.size(); at += kSnapshotBlockBytes) {
    if (std::memcmp(&exact[at], &rounded[at], kSnapshotBlockBytes) == 0) continue;
    ++count;
    float x[kSnapshotBlockNumbers], y[kSnapshotBlockNumbers];
    std::memcpy(x, &exact[at], sizeof(x));
    std::memcpy(y, &rounded[at], sizeof(y));
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < kSnapshotBlockNumbers; ++i) EXPECT_LE(std::fabs(x[i] - y[i]), largest / 254 * 1.0001f) << at;
  }
  return count;
}

class CompactSnapshotTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, CompactSnapshotTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(CompactSnapshotTest, RoundsTheMatricesOfStatesAlone) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer session = model.New({2, 130, 1, 1}), other = model.New({2, 130, 1, 1});
  Feed(session.get(), 0, 37);
  const Bytes exact = Save(*session), compact = Save(*session, /*is_compact=*/true);
  Restore(other.get(), compact);
  EXPECT_EQ(other->instance().tokens_seen(), 37u);
  const Bytes states = States(compact);
  EXPECT_EQ(States(Save(*other)), states);
  const size_t rounded = ExpectNear(States(exact), states);
  uint64_t matrix_blocks = 0;
  for (uint32_t i = 0; i < session->instance().state_count(); ++i) {
    const StateView state = session->model().model().state(i);
    const bool may_round = state.dtype == DType::kF32 && state.shape.rank == 3 && std::strstr(state.name, "scales") == nullptr;
    if (may_round) {
      matrix_blocks += session->instance().state_bytes(i).size() / kSnapshotBlockBytes;
    } else {
      const Span<uint8_t> before = session->instance().state_bytes(i), after = other->instance().state_bytes(i);
      EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size()), 0) << state.name;
    }
  }
  EXPECT_LE(rounded, matrix_blocks);
  EXPECT_EQ(rounded > 0, matrix_blocks > 0);
  // A bit for each block that is stored, the counts of the sequences, and 44 bytes less for each block that is rounded.
  const uint64_t stored = (exact.size() - kHeaderBytes) / kSnapshotBlockBytes;
  EXPECT_LE(compact.size() + 44 * rounded, exact.size() + stored / 8 + 1 + 2 * sizeof(uint64_t));
}

TEST(CompactSnapshot, HasAbout3TenthsOfTheBytes) {
  const Loaded model(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({1, 64, 1, 1});
  Feed(session.get(), 0, 64);
  const double ratio = static_cast<double>(Save(*session, true).size()) / static_cast<double>(Save(*session).size());
  EXPECT_GT(ratio, 0.3);
  EXPECT_LT(ratio, 0.4);
}

// A row that is poisoned stays so.
TEST(CompactSnapshot, BlocksThatAreNotFiniteStayAsTheyAre) {
  const Loaded model(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({1, 64, 1, 1}), other = model.New({1, 64, 1, 1});
  Feed(session.get(), 0, 20);
  const float values[] = {std::nanf(""), INFINITY, -INFINITY, 1e-39f};
  for (size_t i = 0; i < 4; ++i) {
    std::memcpy(session->instance().state_bytes(0).data() + i * kSnapshotBlockBytes + 8, &values[i], sizeof(float));
    if (i == 3) {
      for (size_t j = 0; j < 16; ++j) {
        std::memcpy(session->instance().state_bytes(0).data() + i * kSnapshotBlockBytes + 4 * j, &values[i], sizeof(float));
      }
    }
  }
  Restore(other.get(), Save(*session, true));
  EXPECT_EQ(
      std::memcmp(session->instance().state_bytes(0).data(), other->instance().state_bytes(0).data(), 4 * kSnapshotBlockBytes), 0);
}

TEST(CompactSnapshot, CanBeTheBaseOfADelta) {
  const Loaded model(test::ConfigText(test::kSoftmax));
  const SessionPointer session = model.New({1, 64, 1, 1}), other = model.New({1, 64, 1, 1});
  Feed(session.get(), 0, 20);
  const Bytes base = Save(*session, true);
  const Span<const uint8_t> of_base(base.data(), base.size());
  Restore(session.get(), base);
  Feed(session.get(), 20, 5);
  Bytes delta(static_cast<size_t>(session->DeltaBytes(of_base).value()));
  EXPECT_LT(delta.size(), Save(*session).size() / 2);
  ASSERT_TRUE(session->SaveDelta(of_base, {delta.data(), delta.size()}).ok());
  ASSERT_TRUE(other->RestoreDelta(of_base, {delta.data(), delta.size()}).ok());
  EXPECT_EQ(Save(*other), Save(*session));
}

TEST(CompactSnapshot, MapsOfRoundedBlocksThatLieAreRefused) {
  const Loaded model(test::ConfigText(test::kSoftmax));
  const SessionPointer session = model.New({1, 64, 1, 1});
  Feed(session.get(), 0, 20);
  const Bytes good = Save(*session, true);
  uint64_t state_bytes;
  std::memcpy(&state_bytes, good.data() + 72, sizeof(state_bytes));
  const size_t map = kHeaderBytes + sizeof(uint64_t), map_bytes = static_cast<size_t>((state_bytes / 64 + 7) / 8);
  Bytes whole = good, missing = good;
  ASSERT_NE(whole[map + map_bytes], 0);
  whole[map + map_bytes] = 0;
  Rehash(&whole);
  ExpectRefused(session.get(), whole, TARN_BAD_FORMAT, "its map of blocks says");
  missing[map] = 0;
  Rehash(&missing);
  ExpectRefused(session.get(), missing, TARN_BAD_FORMAT, "its map of blocks says");
}

}  // namespace
}  // namespace tarn
