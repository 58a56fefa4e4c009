// How many threads a pool goes on with after lost time: the times below are made up, in nanoseconds.
#include "runtime/platform/active_threads.h"

#include <gtest/gtest.h>

namespace tarn {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1000 * kUs, kSecond = 1000 * kMs;

TEST(ActiveThreads, AllAtFirst) {
  ActiveThreads active(4);
  active.Update(kSecond);
  EXPECT_EQ(active.count(), 4u);
}

TEST(ActiveThreads, NeverMoreThanProcessorsAndBackOneByOne) {
  ActiveThreads active(4);
  active.SetProcessors(1);
  active.Update(kSecond);
  EXPECT_EQ(active.count(), 1u);
  active.SetProcessors(0);
  EXPECT_EQ(active.count(), 1u);
  active.SetProcessors(UINT32_MAX);
  active.Update(2 * kSecond);
  EXPECT_EQ(active.count(), 2u);
  active.Update(2 * kSecond + kUs);  // the second one has to prove itself first
  EXPECT_EQ(active.count(), 2u);
  active.Update(3 * kSecond);
  active.Update(4 * kSecond);
  active.Update(5 * kSecond);
  EXPECT_EQ(active.count(), 4u);
}

TEST(ActiveThreads, ALittleLostTimeIsForgotten) {
  ActiveThreads active(2);
  for (uint64_t now = kSecond; now < 3 * kSecond; now += 10 * kMs) active.Lost(now, 500 * kUs, 1);  // a twentieth
  EXPECT_EQ(active.count(), 2u);
}

TEST(ActiveThreads, AShortTaskNowAndThenCostsNoThread) {
  ActiveThreads active(2);
  for (uint64_t now = kSecond; now < 9 * kSecond; now += 500 * kMs) {
    active.Lost(now, 4 * kMs, 1);
    active.Lost(now + 8 * kMs, 4 * kMs, 1);
    EXPECT_EQ(active.count(), 2u) << now;
  }
}

TEST(ActiveThreads, MoreThanTwoTimeSlicesAreTooMuch) {
  ActiveThreads active(4);
  active.Lost(kSecond, 4 * kMs, 2);
  active.Lost(kSecond + 4 * kMs, 4 * kMs, 2);
  EXPECT_EQ(active.count(), 4u);
  active.Lost(kSecond + 8 * kMs, 4 * kMs, 2);
  EXPECT_EQ(active.count(), 2u);
  active.Lost(kSecond + 12 * kMs, 4 * kMs, 3);  // the caller is always there
  EXPECT_EQ(active.count(), 1u);
}

// A core that stays taken: what trials lose is a small part of the time, and ever smaller.
TEST(ActiveThreads, TrialsCostLittle) {
  constexpr uint64_t kSlice = 4 * kMs;
  ActiveThreads active(2);
  uint64_t now = kSecond, lost = 0;
  int trials = 0;
  const auto run_until = [&](uint64_t end) {
    while (now < end) {
      active.Update(now);
      if (active.count() == 1) {
        now += kMs;
        continue;
      }
      now += kSlice;
      active.Lost(now, kSlice, 1);
      lost += kSlice;
      trials += active.count() == 1;
    }
  };
  run_until(2 * kSecond);
  EXPECT_LE(lost, kSecond / 40 + 3 * kSlice);  // before the first trial
  EXPECT_GE(trials, 2);
  lost = 0;
  trials = 0;
  run_until(22 * kSecond);
  EXPECT_LE(lost, 20 * kSecond / 300);
  EXPECT_GE(trials, 9);  // two seconds apart at most
}

TEST(ActiveThreads, ATrialThatLosesMuchIsRepeatedAfterTwoSecondsToo) {
  ActiveThreads active(2);
  active.Lost(kSecond, 20 * kMs, 1);
  active.Update(kSecond + 20 * kMs);
  active.Lost(kSecond + 30 * kMs, 500 * kMs, 1);
  active.Update(kSecond + 30 * kMs + 1999 * kMs);
  EXPECT_EQ(active.count(), 1u);
  active.Update(kSecond + 30 * kMs + 2000 * kMs);
  EXPECT_EQ(active.count(), 2u);
}

TEST(ActiveThreads, ACoreThatComesBackIsUsedAgain) {
  ActiveThreads active(2);
  active.Lost(kSecond, 20 * kMs, 1);
  active.Update(kSecond + 19 * kMs);
  EXPECT_EQ(active.count(), 1u);
  active.Update(kSecond + 20 * kMs);
  EXPECT_EQ(active.count(), 2u);
  active.Lost(10 * kSecond, 20 * kMs, 1);  // after a long good time: as at first
  active.Update(10 * kSecond + 20 * kMs);
  EXPECT_EQ(active.count(), 2u);
  active.Lost(10 * kSecond + 24 * kMs, 4 * kMs, 1);  // the trial failed
  active.Update(10 * kSecond + 24 * kMs + 127 * kMs);
  EXPECT_EQ(active.count(), 1u);
  active.Update(10 * kSecond + 24 * kMs + 128 * kMs);  // 32 times what was lost
  EXPECT_EQ(active.count(), 2u);
  active.Lost(10 * kSecond + 156 * kMs, 4 * kMs, 1);  // the next one too: twice as long
  active.Update(10 * kSecond + 156 * kMs + 255 * kMs);
  EXPECT_EQ(active.count(), 1u);
  active.Update(10 * kSecond + 156 * kMs + 256 * kMs);
  EXPECT_EQ(active.count(), 2u);
}

}  // namespace
}  // namespace tarn
