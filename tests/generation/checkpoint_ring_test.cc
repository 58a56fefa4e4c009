// Which checkpoints stay: spaces double with age, the oldest and those with a tag stay.
#include "runtime/generation/checkpoint_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/allocator.h"

namespace tarn {
namespace {

class Ring {
 public:
  explicit Ring(uint32_t capacity) {
    Bump measure;
    CheckpointRing().TakeArrays(&measure, capacity);
    memory_ = std::move(Block::Allocate(DefaultAllocator(), measure.used(), "ring").value());
    Bump bump(memory_.bytes());
    ring_.TakeArrays(&bump, capacity);
  }
  CheckpointRing* operator->() { return &ring_; }
  std::vector<uint64_t> Positions() const {
    std::vector<uint64_t> positions;
    std::set<uint32_t> slots;
    for (size_t i = 0; i < ring_.size(); ++i) {
      positions.push_back(ring_[i].position);
      slots.insert(ring_[i].slot);
    }
    EXPECT_EQ(slots.size(), ring_.size());
    EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
    return positions;
  }

 private:
  Block memory_;
  CheckpointRing ring_;
};

// To go back by n tokens, at most this share of n is replayed.
double MostReplayed(const std::vector<uint64_t>& positions, uint64_t now) {
  double most = 0;
  for (size_t i = 1; i < positions.size(); ++i) {
    const double back = static_cast<double>(now - positions[i] + 1),
                 replayed = static_cast<double>(positions[i] - 1 - positions[i - 1]);
    most = std::max(most, replayed / back);
  }
  return most;
}

TEST(CheckpointRing, SpacesDoubleWithAge) {
  Ring ring(24);
  for (uint64_t now = 0; now <= 10'000; ++now) {
    ASSERT_NE(ring->Add(now, false, 0), nullptr);
    const std::vector<uint64_t> positions = ring.Positions();
    ASSERT_EQ(positions.size(), std::min<uint64_t>(24, now + 1));
    ASSERT_EQ(positions.front(), 0u);
    ASSERT_EQ(positions.back(), now);
    ASSERT_LE(MostReplayed(positions, now), 1.0) << now;
  }
}

TEST(CheckpointRing, TagsStayWhileThereAreOthers) {
  Ring ring(4);
  ring->Add(0, false, 0);
  ring->Add(1, true, 7);
  ring->Add(2, true, 8);
  for (uint64_t now = 3; now < 50; ++now) ASSERT_NE(ring->Add(now, false, 0), nullptr);
  EXPECT_EQ(ring.Positions(), (std::vector<uint64_t>{0, 1, 2, 49}));
  ring->Add(50, true, 9);
  EXPECT_EQ(ring.Positions(), (std::vector<uint64_t>{0, 1, 2, 50}));
  ring->Add(51, true, 7);
  EXPECT_EQ(ring.Positions(), (std::vector<uint64_t>{1, 2, 50, 51}));
  EXPECT_EQ(ring->Add(52, false, 0), nullptr);
  EXPECT_EQ(ring->FindTag(7)->position, 51u);
  EXPECT_EQ(ring->FindTag(1), nullptr);
  ring->Add(53, true, 10);
  EXPECT_EQ(ring.Positions(), (std::vector<uint64_t>{2, 50, 51, 53}));
  EXPECT_EQ(ring->LastUntil(1), nullptr);
  EXPECT_EQ(ring->LastUntil(52)->position, 51u);
  ring->DropAfter(*ring->LastUntil(50));
  EXPECT_EQ(ring.Positions(), (std::vector<uint64_t>{2, 50}));
}

TEST(CheckpointRing, OneIsEnough) {
  Ring ring(1);
  for (uint64_t now = 0; now < 5; ++now) {
    ring->Add(now, now == 3, 0);
    EXPECT_EQ(ring.Positions(), std::vector<uint64_t>{std::min<uint64_t>(now, 3)});
  }
}

}  // namespace
}  // namespace tarn
