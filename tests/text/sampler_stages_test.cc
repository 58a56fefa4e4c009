// Each stage of the sampler against cases that are worked out by hand in the comments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/allocator.h"
#include "runtime/text/candidates.h"
#include "runtime/text/draw.h"
#include "runtime/text/penalties.h"
#include "runtime/text/sampler.h"
#include "runtime/text/truncation.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();

SamplerConfig Plain() { return {1.0f, 0, 1.0f, 0.0f, 1.0f, 0, 42}; }

// --- stages that change logits ---

class Edits : public testing::Test {
 protected:
  // The window, the newest last.
  void Accept(const std::vector<int32_t>& tokens) {
    ring_.assign(tokens.size(), 0);
    recent_ = {};
    recent_.Use({ring_.data(), ring_.size()});
    for (const int32_t token : tokens) recent_.Add(token);
  }
  std::vector<float> Penalized(std::vector<float> logits) {
    std::vector<uint32_t> counts(logits.size());
    Penalize(config_, recent_, {counts.data(), counts.size()}, {logits.data(), logits.size()});
    EXPECT_EQ(counts, std::vector<uint32_t>(logits.size())) << "left behind";
    return logits;
  }
  // What DRY takes from ten logits of 0.
  std::vector<float> Dry(const std::vector<int32_t>& breakers = {}) {
    std::vector<float> logits(10);
    std::vector<uint32_t> lengths(std::max<size_t>(ring_.size(), 1)), longest(logits.size());
    PenalizeRepeats(config_, recent_, {breakers.data(), breakers.size()}, {lengths.data(), lengths.size()},
                    {longest.data(), longest.size()}, {logits.data(), logits.size()});
    EXPECT_EQ(longest, std::vector<uint32_t>(logits.size())) << "left behind";
    for (float& logit : logits) logit = 0 - logit;
    return logits;
  }

  SamplerConfig config_ = Plain();
  std::vector<int32_t> ring_;
  RecentTokens recent_;
};

TEST_F(Edits, PenaltiesDivideThenSubtractByCountAndOnce) {
  config_.repeat_penalty = 2;
  config_.repeat_last_n = 8;
  config_.frequency_penalty = 0.5f;
  config_.presence_penalty = 0.25f;
  Accept({0, 1, 0});
  // 0: 2 / 2 - (2 * 0.5 + 0.25); 1: -1 * 2 - (0.5 + 0.25)
  EXPECT_EQ(Penalized({2, -1, 3, 0.5f}), (std::vector<float>{-0.25f, -2.75f, 3, 0.5f}));
  config_.repeat_last_n = 1;  // the newest: 0, once: 2 / 2 - 0.75
  EXPECT_EQ(Penalized({2, -1, 3, 0.5f}), (std::vector<float>{0.25f, -1, 3, 0.5f}));
  config_.frequency_penalty = -0.5f;  // negative ones raise: 2 / 2 - (-0.5 + 0.25)
  EXPECT_EQ(Penalized({2, -1, 3, 0.5f}), (std::vector<float>{1.25f, -1, 3, 0.5f}));
}

TEST_F(Edits, PenaltiesKeepFiniteLogitsFiniteAndInfiniteOnesInfinite) {
  config_.repeat_last_n = 8;
  config_.presence_penalty = kMost;
  Accept({0, 1, 2});
  EXPECT_EQ(Penalized({-kMost, kInfinity, -kInfinity}), (std::vector<float>{-kMost, kInfinity, -kInfinity}));
  EXPECT_EQ(Lowered(1, INFINITY), -kMost);
  EXPECT_EQ(Lowered(-1, -INFINITY), kMost);
}

TEST_F(Edits, DryPenalizesWhatFollowedTheLongestRepetition) {
  config_.dry_multiplier = 0.8f;
  const float kOne = 0.8f;  // 0.8 * 1.75^0
  Accept({1, 2, 3, 9, 1, 2, 3});
  // "1 2 3" stands twice, 9 followed: 3 tokens, 0.8 * 1.75^(3 - 2) = 1.4.
  EXPECT_EQ(Dry(), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1.4f}));
  // A breaker inside the repetition leaves what is behind it: "2 3", 0.8 * 1.75^0.
  EXPECT_EQ(Dry({1}), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, kOne}));
  // Only "3" is left, or nothing: shorter than 2.
  EXPECT_EQ(Dry({2}), std::vector<float>(10));
  EXPECT_EQ(Dry({3}), std::vector<float>(10));
  // What followed is a breaker itself.
  EXPECT_EQ(Dry({9}), std::vector<float>(10));
  // Breakers elsewhere do nothing.
  EXPECT_EQ(Dry({0, 4, 5}), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1.4f}));
  config_.dry_allowed_length = 3;
  EXPECT_EQ(Dry(), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, kOne}));
  config_.dry_allowed_length = 4;
  EXPECT_EQ(Dry(), std::vector<float>(10));
}

TEST_F(Edits, DryLooksAtItsWindowOnly) {
  config_.dry_multiplier = 0.8f;
  Accept({1, 2, 3, 9, 1, 2, 3});
  config_.dry_last_n = 6;  // "2 3 9 1 2 3": of the first occurrence "2 3" is left
  EXPECT_EQ(Dry()[9], 0.8f);
  config_.dry_last_n = 5;  // "3 9 1 2 3"
  EXPECT_EQ(Dry(), std::vector<float>(10));
  Accept({});
  EXPECT_EQ(Dry(), std::vector<float>(10));
}

TEST_F(Edits, DryTakesTheLongestOfSeveralAndLetsRepetitionsOverlap) {
  config_.dry_multiplier = 0.5f;
  config_.dry_base = 2;
  // The end "1 2" after "0" and after "3": "3 1 2" was followed by 5, "1 2" by 4 and by 5.
  Accept({0, 1, 2, 4, 3, 1, 2, 5, 1, 2, 5, 3, 1, 2});
  // 4: "1 2", 0.5 * 2^0. 5: "3 1 2", 0.5 * 2^1, not the sum with the shorter one.
  EXPECT_EQ(Dry(), (std::vector<float>{0, 0, 0, 0, 0.5f, 1, 0, 0, 0, 0}));
  // "7 7 7 7": the end "7 7 7" begins one token earlier as well, and 7 followed: 0.5 * 2^(3 - 2).
  Accept({7, 7, 7, 7});
  EXPECT_EQ(Dry()[7], 1);
}

TEST_F(Edits, DryIsNeverInfinite) {
  config_.dry_multiplier = 1;
  config_.dry_base = 1e30f;
  Accept(std::vector<int32_t>(200, 7));  // 1e30^197 is no double
  EXPECT_EQ(Dry()[7], kMost);
}

// --- the same through a sampler ---

int32_t Greedy(SamplerConfig config, const std::vector<float>& logits) {
  config.temperature = 0;
  const Result<Sampler*> sampler = Sampler::Create(static_cast<uint32_t>(logits.size()), config, DefaultAllocator());
  int32_t token = -1;
  EXPECT_TRUE(sampler.ok()) << sampler.status().message();
  const Status status = sampler.value()->Sample(logits.data(), &token);
  EXPECT_TRUE(status.ok()) << status.message();
  Sampler::Destroy(sampler.value());
  return token;
}

TEST(SamplerEdits, BiasesAddUpBansWinTheCallbackSeesBoth) {
  const std::vector<float> logits = {1, 2, 3};
  SamplerConfig config = Plain();
  const TokenBias biases[] = {{0, 1.25f}, {1, 0.75f}, {0, 1.25f}};  // 0: 3.5, 1: 2.75
  config.logit_bias = biases;
  EXPECT_EQ(Greedy(config, logits), 0);
  const int32_t banned[] = {0, 2};
  config.banned_tokens = banned;
  EXPECT_EQ(Greedy(config, logits), 1);
  std::vector<float> seen;
  config.edit_context = &seen;
  config.edit_logits = [](void* context, float* edited, size_t size) {
    static_cast<std::vector<float>*>(context)->assign(edited, edited + size);
    edited[2] = 5;
  };
  EXPECT_EQ(Greedy(config, logits), 2);
  EXPECT_EQ(seen, (std::vector<float>{-kInfinity, 2.75f, -kInfinity}));
  EXPECT_EQ(logits, (std::vector<float>{1, 2, 3})) << "the caller's logits";
}

TEST(SamplerEdits, PenaltiesComeAfterTheBias) {
  SamplerConfig config = Plain();
  config.temperature = 0;
  config.repeat_penalty = 2;
  config.repeat_last_n = 4;
  const TokenBias biases[] = {{0, 3}};
  config.logit_bias = biases;
  const Result<Sampler*> sampler = Sampler::Create(2, config, DefaultAllocator());
  ASSERT_TRUE(sampler.ok());
  sampler.value()->Accept(0);
  const float logits[] = {-2, 0.4f};  // (-2 + 3) / 2 = 0.5 is the larger; -2 * 2 + 3 would not be
  int32_t token = -1;
  ASSERT_TRUE(sampler.value()->Sample(logits, &token).ok());
  EXPECT_EQ(token, 0);
  Sampler::Destroy(sampler.value());
}

TEST(SamplerEdits, ACallbackMayMaskAllButNotInventNan) {
  SamplerConfig config = Plain();
  config.edit_logits = [](void*, float* edited, size_t size) { std::fill(edited, edited + size, -kInfinity); };
  Result<Sampler*> sampler = Sampler::Create(3, config, DefaultAllocator());
  ASSERT_TRUE(sampler.ok());
  const float logits[] = {1, 2, 3};
  int32_t token = -7;
  EXPECT_STREQ(sampler.value()->Sample(logits, &token).message(), "every logit is -inf: no token can be drawn");
  EXPECT_EQ(token, -7);
  Sampler::Destroy(sampler.value());
  config.edit_logits = [](void*, float* edited, size_t) { edited[1] = NAN; };
  sampler = Sampler::Create(3, config, DefaultAllocator());
  ASSERT_TRUE(sampler.ok());
  EXPECT_STREQ(sampler.value()->Sample(logits, &token).message(), "the logit of token 1 is NaN");
  Sampler::Destroy(sampler.value());
}

// --- stages that drop tokens ---

class Truncation : public testing::Test {
 protected:
  explicit Truncation(std::vector<float> probabilities = {0.5f, 0.25f, 0.15f, 0.1f}) { Set(probabilities); }

  void Set(const std::vector<float>& probabilities) {
    room_.clear();
    for (const float p : probabilities) room_.push_back({std::log(p), static_cast<int32_t>(room_.size())});
    candidates_ = {{room_.data(), room_.size()}, room_.size(), false, 0};
    candidates_.max_logit = std::log(*std::max_element(probabilities.begin(), probabilities.end()));
  }
  std::vector<int32_t> Ids() const {
    std::vector<int32_t> ids;
    for (const Candidate& candidate : candidates_) ids.push_back(candidate.id);
    return ids;
  }
  template <typename Stage>
  std::vector<int32_t> After(Stage stage, double value) {
    Set({0.5f, 0.25f, 0.15f, 0.1f});
    stage(value, &candidates_);
    return Ids();
  }

  std::vector<Candidate> room_;
  Candidates candidates_;
};

using Kept = std::vector<int32_t>;

TEST_F(Truncation, TopNSigma) {
  // Mean 1, variance (9 + 1 + 1 + 9) / 4 = 5, sigma 2.2361: floors 4 - 2.2361 and 4 - 4.4721; -inf does not count.
  const float logits[] = {4, 2, -kInfinity, 0, -2};
  EXPECT_NEAR(SigmaFloor(1, logits), 1.763932, 1e-6);
  EXPECT_NEAR(SigmaFloor(2, logits), -0.472136, 1e-6);
  const auto kept = [&](double n) {
    room_.resize(5);
    candidates_.room = {room_.data(), room_.size()};
    EXPECT_TRUE(CollectTopK(logits, 5, SigmaFloor(n, logits), &candidates_).ok());
    return Ids();
  };
  EXPECT_EQ(kept(0.5), (Kept{0}));
  EXPECT_EQ(kept(1), (Kept{0, 1}));
  EXPECT_EQ(kept(2), (Kept{0, 1, 3}));
  EXPECT_EQ(kept(3), (Kept{0, 1, 3, 4}));
  const float equal[] = {0.1f, 0.1f, 0.1f};
  EXPECT_LE(SigmaFloor(1, equal), 0.1f);  // none is dropped
  const float infinite[] = {1, kInfinity, 2};
  EXPECT_EQ(SigmaFloor(1, infinite), kInfinity);
}

TEST_F(Truncation, TopK) {
  const float logits[] = {1, 5, 5, 2, 5, 3};
  room_.resize(TopKRoom(2, 6));
  candidates_.room = {room_.data(), room_.size()};
  ASSERT_TRUE(CollectTopK(logits, 2, -INFINITY, &candidates_).ok());
  EXPECT_EQ(Ids(), (Kept{1, 2}));  // of the three equal ones the lower ids
  EXPECT_EQ(candidates_.max_logit, 5);
  EXPECT_TRUE(candidates_.ordered);
}

TEST_F(Truncation, Typical) {
  // -log p: 0.6931, 1.3863, 1.8971, 2.3026; H = 0.5 * 0.6931 + ... = 1.2080. Distances 0.5148, 0.1783, 0.6892, 1.0946: the order is
  // 1, 0, 2, 3 with sums 0.25, 0.75, 0.9, 1.
  EXPECT_EQ(After(KeepTypical, 0.2), (Kept{1}));
  EXPECT_EQ(candidates_.max_logit, std::log(0.25f));
  EXPECT_EQ(After(KeepTypical, 0.7), (Kept{0, 1}));
  EXPECT_EQ(After(KeepTypical, 0.8), (Kept{0, 1, 2}));
  EXPECT_EQ(After(KeepTypical, 0.95), (Kept{0, 1, 2, 3}));
  EXPECT_TRUE(candidates_.ordered);
}

TEST_F(Truncation, TopP) {
  EXPECT_EQ(After(KeepTopP, 0.49), (Kept{0}));
  EXPECT_EQ(After(KeepTopP, 0.51), (Kept{0, 1}));
  EXPECT_EQ(After(KeepTopP, 0.89), (Kept{0, 1, 2}));
  EXPECT_EQ(After(KeepTopP, 0.91), (Kept{0, 1, 2, 3}));
}

TEST_F(Truncation, MinP) {
  // Against 0.5 * share.
  EXPECT_EQ(After(KeepMinP, 0.51), (Kept{0}));
  EXPECT_EQ(After(KeepMinP, 0.49), (Kept{0, 1}));
  EXPECT_EQ(After(KeepMinP, 0.29), (Kept{0, 1, 2}));
  EXPECT_EQ(After(KeepMinP, 0.19), (Kept{0, 1, 2, 3}));
}

TEST_F(Truncation, Xtc) {
  EXPECT_EQ(After(ExcludeTopChoices, 0.51), (Kept{0, 1, 2, 3}));  // no token reaches it
  EXPECT_EQ(After(ExcludeTopChoices, 0.3), (Kept{0, 1, 2, 3}));   // one does, and stays
  EXPECT_EQ(After(ExcludeTopChoices, 0.2), (Kept{1, 2, 3}));      // 0 and 1 do
  EXPECT_EQ(candidates_.max_logit, std::log(0.25f));
  EXPECT_EQ(After(ExcludeTopChoices, 0.12), (Kept{2, 3}));
  EXPECT_EQ(After(ExcludeTopChoices, 0.05), (Kept{3}));
  Set({0.4f, 0.4f, 0.2f});
  ExcludeTopChoices(0.3, &candidates_);  // of equal ones the first goes
  EXPECT_EQ(Ids(), (Kept{1, 2}));
}

// --- temperature, Mirostat, draw ---

TEST_F(Truncation, DynamicTemperature) {
  SamplerConfig config = Plain();
  config.dynatemp_range = 0.5f;
  Set({0.5f, 0.5f});
  EXPECT_NEAR(Temperature(config, candidates_), 1.5, 1e-9);  // the most entropy there is
  Set({0.9f, 0.1f});
  // H = -0.9 log 0.9 - 0.1 log 0.1 = 0.325083, of log 2: 0.468996. From 0.5 to 1.5: 0.5 + 0.468996.
  EXPECT_NEAR(Temperature(config, candidates_), 0.968996, 1e-6);
  config.dynatemp_exponent = 2;  // 0.5 + 0.468996^2
  EXPECT_NEAR(Temperature(config, candidates_), 0.719957, 1e-6);
  config.dynatemp_exponent = 1;
  config.temperature = 0.25f;  // from 0 to 0.75: 0.75 * 0.468996
  EXPECT_NEAR(Temperature(config, candidates_), 0.351747, 1e-6);
  Set({1});
  EXPECT_EQ(Temperature(config, candidates_), 0.25);  // one token has no entropy to speak of
}

TEST_F(Truncation, ADynamicTemperatureOf0TakesTheLargest) {
  SamplerConfig config = Plain();
  config.dynatemp_range = 2;
  room_ = {{-1000, 0}, {1000, 1}, {-1000, 2}};  // certain: the entropy is 0
  candidates_ = {{room_.data(), room_.size()}, 3, false, 1000};
  EXPECT_EQ(Temperature(config, candidates_), 0);
  Pcg32 random(1);
  double weights[3];
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Draw(0, &random, weights, candidates_), 1);
}

TEST_F(Truncation, Mirostat) {
  // Surprises of 1, 2, 3 and 3 bits.
  SamplerConfig config = Plain();
  config.mirostat = 2;
  config.mirostat_tau = 1.2f;
  config.mirostat_eta = 0.1f;
  double weights[4];
  Pcg32 random(1);
  bool seen[2] = {false, false};
  for (int i = 0; i < 100; ++i) {
    Set({0.5f, 0.25f, 0.125f, 0.125f});
    MirostatState state = StartOf(config);
    EXPECT_NEAR(state.mu, 2.4, 1e-6);
    const int32_t token = DrawByMirostat(config, 1, &state, &random, weights, &candidates_);
    // Of the two that are left, one has 2/3 and the other 1/3: log2(1.5) = 0.584963 bits and log2(3) = 1.584963.
    ASSERT_LT(token, 2);
    EXPECT_NEAR(state.mu, token == 0 ? 2.4 - 0.1 * (0.584963 - 1.2) : 2.4 - 0.1 * (1.584963 - 1.2), 1e-6);
    seen[token] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1]);
  // No token is as little surprising as half a bit: the most probable one stays, with surprise 0.
  Set({0.125f, 0.5f, 0.25f, 0.125f});
  MirostatState state = {0.5};
  EXPECT_EQ(DrawByMirostat(config, 1, &state, &random, weights, &candidates_), 1);
  EXPECT_NEAR(state.mu, 0.5 + 0.1 * 1.2, 1e-6);
}

}  // namespace
}  // namespace tarn
