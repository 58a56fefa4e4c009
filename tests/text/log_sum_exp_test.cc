// Log-sum-exp against the same in long double.
#include "runtime/text/log_sum_exp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/text/pcg32.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void ExpectExact(const std::vector<float>& logits) {
  LogSumExp found{};
  const Status status = Summarize(logits.data(), logits.size(), &found);
  ASSERT_TRUE(status.ok()) << status.message();
  const float largest = *std::max_element(logits.begin(), logits.end());
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - static_cast<long double>(largest));
  EXPECT_EQ(found.largest, largest);
  EXPECT_NEAR(found.log_sum, static_cast<double>(std::log(sum)), 1e-6) << logits.size() << " logits";
  EXPECT_GE(found.log_sum, 0);
}

TEST(LogSumExpTest, IsThatOfLongDouble) {
  Pcg32 random(1);
  for (const size_t size : {1u, 2u, 15u, 16u, 17u, 255u, 1023u, 1024u, 1025u, 2064u, 32768u, 100003u}) {
    for (const double range : {0.0, 1e-3, 1.0, 20.0, 300.0, 1e30}) {
      for (const double offset : {0.0, -1000.0, 1000.0}) {
        std::vector<float> logits(size);
        for (float& logit : logits) logit = static_cast<float>(offset + range * (random.NextDouble() - 0.5));
        ExpectExact(logits);
        std::sort(logits.begin(), logits.end());  // every block raises the maximum
        ExpectExact(logits);
        for (size_t i = 0; i + 1 < size; i += 2) logits[i] = -kInfinity;
        ExpectExact(logits);
      }
    }
  }
  for (float below = 10; below < 14; below += 0.03f) {  // each adds as little to the largest term as a rounding of it
    std::vector<float> tail(1024, -below);
    tail[0] = 0;
    ExpectExact(tail);
    std::swap(tail[0], tail[1023]);
    ExpectExact(tail);
  }
  std::vector<float> first(5000, -kInfinity);
  first[4999] = -3e38f;
  ExpectExact(first);
  first[0] = 3e38f;
  ExpectExact(first);
}

TEST(LogSumExpTest, EveryExponentIsRight) {
  for (float x = -110; x <= 0; x += 0.0037f) {
    LogSumExp found{};
    std::vector<float> logits(16, -kInfinity);  // each in a sum of its own, which are added in double
    logits[0] = 0;
    logits[1] = x;
    ASSERT_TRUE(Summarize(logits.data(), logits.size(), &found).ok());
    ASSERT_NEAR(found.log_sum, std::log1p(std::exp(static_cast<double>(x))), 4e-7 * std::exp(static_cast<double>(x)) + 2e-16) << x;
  }
}

TEST(LogSumExpTest, WhatIsNoNumberIsNamed) {
  const auto message = [](const std::vector<float>& logits) -> std::string {
    LogSumExp found{7, 7};
    const Status status = Summarize(logits.data(), logits.size(), &found);
    EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
    EXPECT_EQ(found.largest, 7);
    return status.message();
  };
  for (const size_t size : {1u, 16u, 40u, 1024u, 3000u}) {
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      std::vector<float> logits(size, 1.5f);
      logits[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(message(logits), "the logit of token " + std::to_string(at) + " is NaN");
      logits[at] = kInfinity;
      EXPECT_EQ(message(logits), "the logit of token " + std::to_string(at) + " is inf");
    }
    EXPECT_EQ(message(std::vector<float>(size, -kInfinity)), "every logit is -inf: no token can follow");
  }
}

}  // namespace
}  // namespace tarn
