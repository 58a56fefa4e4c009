#include "runtime/text/log_probabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/text/pcg32.h"
#include "tests/text/allocation_count.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Span<const float> SpanOf(const std::vector<float>& logits) { return {logits.data(), logits.size()}; }

TEST(LogProbabilities, ByHand) {
  // exp: 1, 2, 4, 1: of 8.
  const std::vector<float> logits = {0, std::log(2.0f), std::log(4.0f), 0, -kInfinity};
  LogProbability best[5];
  size_t count = 0;
  double log_probability = 0;
  ASSERT_TRUE(LogProbabilities(SpanOf(logits), 1, &log_probability, {best, 3}, &count).ok());
  EXPECT_NEAR(log_probability, std::log(0.25), 1e-6);
  ASSERT_EQ(count, 3u);
  const int32_t kIds[] = {2, 1, 0};  // 0 and 3 are equal: the lower id
  const double kProbabilities[] = {0.5, 0.25, 0.125};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(best[i].token, kIds[i]);
    EXPECT_NEAR(best[i].log_probability, std::log(kProbabilities[i]), 1e-6);
  }
  ASSERT_TRUE(LogProbabilities(SpanOf(logits), 4, &log_probability, {best, 5}, &count).ok());
  EXPECT_EQ(log_probability, -INFINITY);
  EXPECT_EQ(count, 4u) << "the fifth cannot follow";
  ASSERT_TRUE(LogProbabilities(SpanOf(logits), -1, nullptr, {}, &count).ok());
  EXPECT_EQ(count, 0u);
}

TEST(LogProbabilities, AreThoseOfAFullSort) {
  Pcg32 random(50);
  for (int round = 0; round < 300; ++round) {
    const size_t size = 1 + random.Next() % 3000;
    const uint32_t levels = round % 2 == 0 ? 20 : 1000000;  // with ties, and without
    std::vector<float> logits(size);
    for (float& logit : logits) logit = 20 * static_cast<float>(random.Next() % levels) / static_cast<float>(levels) - 10;
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    const size_t token = random.Next() % size;
    std::vector<LogProbability> best(1 + random.Next() % 60);
    size_t count = 0;
    double log_probability = 0;
    ASSERT_TRUE(
        LogProbabilities(SpanOf(logits), static_cast<int32_t>(token), &log_probability, {best.data(), best.size()}, &count).ok());
    EXPECT_NEAR(log_probability, double{logits[token]} - std::log(total), 1e-6);
    ASSERT_EQ(count, std::min(size, best.size()));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(best[i].token, static_cast<int32_t>(order[i])) << "round " << round << " place " << i;
      EXPECT_NEAR(best[i].log_probability, double{logits[order[i]]} - std::log(total), 1e-6);
    }
  }
}

TEST(LogProbabilities, RefusesWhatIsNoDistributionAndAllocatesNothing) {
  LogProbability best[2];
  size_t count = 7;
  double log_probability = 7;
  const auto message = [&](const std::vector<float>& logits) {
    const Status status = LogProbabilities(SpanOf(logits), 0, &log_probability, best, &count);
    EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
    return std::string(status.message());
  };
  EXPECT_EQ(message({0, NAN}), "the logit of token 1 is NaN");
  EXPECT_EQ(message({0, 1, kInfinity}), "the logit of token 2 is inf");
  EXPECT_EQ(message({-kInfinity}), "every logit is -inf: no token can follow");
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(log_probability, 7);
  const std::vector<float> logits(1000, 0.5f);
  std::vector<LogProbability> many(100);
  const uint64_t before = AllocationCount();
  ASSERT_TRUE(LogProbabilities(SpanOf(logits), 3, &log_probability, {many.data(), many.size()}, &count).ok());
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace tarn
