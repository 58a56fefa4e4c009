// The sampler against a chain written plainly over vectors, token by token, and its draws against exact probabilities.
#include "runtime/text/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/text/allocation_count.h"
#include "tests/text/counting_allocator.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const SamplerConfig kPlain = {1.0f, 0, 1.0f, 0.0f, 1.0f, 0, 42};  // a draw from softmax(logits)

using Handle = std::unique_ptr<Sampler, void (*)(Sampler*)>;

Handle Make(size_t vocab_size, const SamplerConfig& config) {
  const Result<Sampler*> sampler = Sampler::Create(static_cast<uint32_t>(vocab_size), config, DefaultAllocator());
  EXPECT_TRUE(sampler.ok()) << sampler.status().message();
  return Handle(sampler.value(), Sampler::Destroy);
}

int32_t Pick(const Handle& sampler, const std::vector<float>& logits) {
  int32_t token = -1;
  const Status status = sampler->Sample(logits.data(), &token);
  EXPECT_TRUE(status.ok()) << status.message();
  return token;
}

TEST(Sampler, APenaltyLeavesAFiniteLogitFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const float temperature : {0.0f, 1.0f}) {
    const Handle sampler = Make(2, {temperature, 0, 1.0f, 0.0f, /*repeat_penalty=*/2.0f, 4, 42});
    sampler->Accept(1);
    EXPECT_EQ(Pick(sampler, {-kInfinity, -kLargest}), 1);  // the only one that can be drawn
    const Handle raises = Make(2, {temperature, 0, 1.0f, 0.0f, /*repeat_penalty=*/0.5f, 4, 42});
    raises->Accept(1);
    EXPECT_EQ(Pick(raises, {0.0f, kLargest}), 1);
  }
}

struct Choice {
  int32_t id;
  double logit;
  double probability;  // after the chain
};

// What sampler.h documents, in the order in which the draw walks.
std::vector<Choice> Chain(std::vector<float> logits, const SamplerConfig& config, const std::deque<int32_t>& window) {
  for (const int32_t id : std::set<int32_t>(window.begin(), window.end())) {
    float& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / config.repeat_penalty : logit * config.repeat_penalty;
  }
  std::vector<Choice> choices;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInfinity) choices.push_back({static_cast<int32_t>(i), logits[i], 0});
  }
  const bool cuts = config.top_k > 0 && config.top_k < logits.size();
  double top = -kInfinity;
  double total = 0;
  for (const Choice& choice : choices) top = std::max(top, choice.logit);
  if (cuts || config.top_p < 1) {
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.logit > b.logit; });
  }
  if (cuts) choices.resize(std::min<size_t>(choices.size(), config.top_k));
  for (const Choice& choice : choices) total += std::exp(choice.logit - top);
  if (config.top_p < 1) {
    double sum = 0;
    size_t count = 0;
    while (count < choices.size() && sum < config.top_p * total) sum += std::exp(choices[count++].logit - top);
    choices.resize(count);
  }
  std::vector<Choice> kept;
  for (const Choice& choice : choices) {
    if (config.min_p == 0 || choice.logit - top >= std::log(double{config.min_p})) kept.push_back(choice);
  }
  total = 0;
  for (Choice& choice : kept) total += choice.probability = std::exp((choice.logit - top) / config.temperature);
  for (Choice& choice : kept) choice.probability /= total;
  return kept;
}

int32_t DrawFrom(const std::vector<Choice>& choices, double uniform) {
  double sum = 0;
  for (const Choice& choice : choices) {
    sum += choice.probability;
    if (sum > uniform) return choice.id;
  }
  return choices.back().id;
}

// Logits on a grid, so that there are many ties.
std::vector<float> RandomLogits(Pcg32* random, size_t size, uint32_t levels) {
  std::vector<float> logits(size);
  for (float& logit : logits) logit = static_cast<float>(random->Next() % levels) * (12.0f / static_cast<float>(levels)) - 6;
  return logits;
}

TEST(SamplerTest, EveryTokenIsThatOfTheChain) {
  Pcg32 random(3);
  const uint32_t kTopK[] = {0, 1, 2, 5, 40, 299, 300, 1000};
  const float kTopP[] = {1.0f, 0.95f, 0.5f, 0.01f};
  const float kMinP[] = {0.0f, 0.05f, 0.5f, 1.0f};
  const float kTemperature[] = {0.8f, 0.3f, 3.0f};
  const float kPenalty[] = {1.0f, 1.3f, 0.7f};
  for (int round = 0; round < 400; ++round) {
    const size_t vocab_size = 1 + random.Next() % 300;
    const SamplerConfig config = {kTemperature[random.Next() % 3],
                                  kTopK[random.Next() % 8],
                                  kTopP[random.Next() % 4],
                                  kMinP[random.Next() % 4],
                                  kPenalty[random.Next() % 3],
                                  random.Next() % 9,
                                  random.Next()};
    const Handle sampler = Make(vocab_size, config);
    Pcg32 oracle(config.seed);
    std::deque<int32_t> window;
    for (int step = 0; step < 20; ++step) {
      std::vector<float> logits = RandomLogits(&random, vocab_size, round % 2 == 0 ? 10 : 100000);
      for (size_t i = 1; i < vocab_size; i += 3) logits[i] = round % 5 == 0 ? -kInfinity : logits[i];
      const int32_t expected = DrawFrom(Chain(logits, config, window), oracle.NextDouble());
      ASSERT_EQ(Pick(sampler, logits), expected)
          << "round " << round << " step " << step << " k " << config.top_k << " p " << config.top_p << " min-p " << config.min_p
          << " t " << config.temperature << " penalty " << config.repeat_penalty << " vocab " << vocab_size;
      window.push_back(expected);
      if (window.size() > config.repeat_last_n) window.pop_front();
    }
  }
}

TEST(SamplerTest, DrawsFollowTheProbabilities) {
  // Chi-square over 100,000 draws; the 99.9 % point by Wilson and Hilferty. The seeds are fixed: this cannot flicker.
  const SamplerConfig kConfigs[] = {
      kPlain, {0.7f, 0, 1.0f, 0.0f, 1.0f, 0, 1}, {1.5f, 12, 0.9f, 0.02f, 1.0f, 0, 2}, {0.8f, 40, 0.95f, 0.05f, 1.0f, 64, 3}};
  Pcg32 random(4);
  const std::vector<float> logits = RandomLogits(&random, 30, 1000);
  for (const SamplerConfig& config : kConfigs) {
    const Handle sampler = Make(logits.size(), config);
    std::vector<int> counts(logits.size());
    constexpr int kDraws = 100000;
    for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(Pick(sampler, logits))];
    double chi_square = 0;
    double bins = 0;
    int rest = kDraws;
    double rest_expected = kDraws;
    for (const Choice& choice : Chain(logits, config, {})) {
      const double expected = choice.probability * kDraws;
      if (expected < 5) continue;  // into one bin with all others
      const int count = counts[static_cast<size_t>(choice.id)];
      chi_square += (count - expected) * (count - expected) / expected;
      rest -= count;
      rest_expected -= expected;
      ++bins;
    }
    if (rest_expected >= 5) chi_square += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
    const double freedom = rest_expected >= 5 ? bins : bins - 1;
    const double limit = freedom * std::pow(1 - 2 / (9 * freedom) + 3.09 * std::sqrt(2 / (9 * freedom)), 3);
    EXPECT_LT(chi_square, limit) << "temperature " << config.temperature;
    EXPECT_GT(bins, 4);
  }
}

TEST(SamplerTest, TopPAndMinPLookBeforeTemperature) {
  // p = 0.5, 0.25, 0.15, 0.1; at temperature 100 the four are nearly equal, and a cut there would keep three and four.
  const std::vector<float> logits = {std::log(0.5f), std::log(0.25f), std::log(0.15f), std::log(0.1f)};
  for (const SamplerConfig& config : {SamplerConfig{100, 0, 0.7f, 0, 1, 0, 5}, SamplerConfig{100, 0, 1, 0.4f, 1, 0, 5}}) {
    const Handle sampler = Make(4, config);
    std::set<int32_t> seen;
    for (int i = 0; i < 500; ++i) seen.insert(Pick(sampler, logits));
    EXPECT_EQ(seen, (std::set<int32_t>{0, 1}));
  }
}

TEST(SamplerTest, TopPLooksAtWhatTopKLeft) {
  // Of the two that top-k leaves, the first has 2/3: top-p 0.6 is reached by it alone, though its share of all is 0.5.
  const std::vector<float> logits = {std::log(0.5f), std::log(0.25f), std::log(0.15f), std::log(0.1f)};
  const Handle sampler = Make(4, {1, 2, 0.6f, 0, 1, 0, 6});
  for (int i = 0; i < 200; ++i) ASSERT_EQ(Pick(sampler, logits), 0);
}

TEST(SamplerTest, GreedyTakesTheLargestAndTheLowerIdOfEqualOnes) {
  const SamplerConfig greedy = {0, 40, 0.95f, 0.05f, 1, 64, 0};
  for (const size_t size : {1u, 15u, 16u, 17u, 100u, 1000u}) {
    const Handle sampler = Make(size, greedy);
    for (size_t at = 0; at < size; ++at) {
      std::vector<float> logits(size, -1);
      logits[at] = 2;
      for (size_t i = at; i < size; i += 5) logits[i] = 2;
      ASSERT_EQ(Pick(sampler, logits), static_cast<int32_t>(at));
    }
    ASSERT_EQ(Pick(sampler, std::vector<float>(size, 0.5f)), 0);
  }
}

TEST(SamplerTest, TopKPrefersTheLowerIdOfEqualOnes) {
  const Handle sampler = Make(100, {1, 3, 1, 0, 1, 0, 7});
  std::vector<float> logits(100, 1);
  logits[90] = 2;
  std::set<int32_t> seen;
  for (int i = 0; i < 300; ++i) seen.insert(Pick(sampler, logits));
  EXPECT_EQ(seen, (std::set<int32_t>{0, 1, 90}));
}

TEST(SamplerTest, PenaltyCountsATokenOnceAndForgetsIt) {
  const SamplerConfig config = {0, 0, 1, 0, 2, 3, 0};  // greedy, penalty 2, window 3
  const Handle sampler = Make(4, config);
  sampler->Accept(0);
  sampler->Accept(0);
  sampler->Accept(2);
  // 3 / 2 = 1.5 (once; twice it would be 0.75) beats 1; token 2 falls from -0.1 to -0.2.
  EXPECT_EQ(Pick(sampler, {3, 1, -0.1f, -9}), 0);
  EXPECT_EQ(Pick(sampler, {-9, -9, -0.1f, -0.15f}), 3);  // window {2, 0, 3} by now; token 2 at -0.2, token 3 unpenalised
  for (int i = 0; i < 3; ++i) sampler->Accept(1);
  EXPECT_EQ(Pick(sampler, {3, 5, -9, -9}), 0);  // 0 has left the window: 3 against 5 / 2
}

TEST(SamplerTest, AcceptIgnoresWhatIsNoToken) {
  const Handle sampler = Make(3, {0, 0, 1, 0, 2, 3, 0});
  for (const int32_t token : {-1, 3, INT32_MAX, INT32_MIN}) sampler->Accept(token);
  EXPECT_EQ(Pick(sampler, {1, 2, 3}), 2);
}

TEST(SamplerTest, SameSeedSameTokensAndResetRepeats) {
  Pcg32 random(8);
  const std::vector<float> logits = RandomLogits(&random, 500, 1000);
  SamplerConfig config = {0.8f, 40, 0.95f, 0.05f, 1.1f, 64, 123};
  const auto run = [&](const Handle& sampler) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(Pick(sampler, logits));
    return tokens;
  };
  const Handle first = Make(logits.size(), config);
  const std::vector<int32_t> tokens = run(first);
  EXPECT_EQ(run(Make(logits.size(), config)), tokens);
  first->Reset();
  EXPECT_EQ(run(first), tokens);
  config.seed = 124;
  EXPECT_NE(run(Make(logits.size(), config)), tokens);
}

TEST(SamplerTest, InfiniteLogits) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const uint32_t top_k : {0u, 2u}) {
      for (const float top_p : {0.9f, 1.0f}) {
        const Handle sampler = Make(4, {temperature, top_k, top_p, 0.01f, 1, 0, 9});
        EXPECT_EQ(Pick(sampler, {-kInfinity, -5, -kInfinity, -kInfinity}), 1);
        EXPECT_EQ(Pick(sampler, {1, 2, kInfinity, 3e38f}), 2);
        const std::vector<float> none(4, -kInfinity);
        int32_t token = -7;
        const Status status = sampler->Sample(none.data(), &token);
        EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
        EXPECT_EQ(token, -7);
      }
    }
  }
}

TEST(SamplerTest, NanIsNamedAndChangesNothing) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const uint32_t top_k : {0u, 3u}) {
      const SamplerConfig config = {temperature, top_k, 0.9f, 0, 1.5f, 8, 10};
      Pcg32 random(11);
      const std::vector<float> good = RandomLogits(&random, 70, 1000);
      const Handle sampler = Make(70, config);
      for (const size_t at : {0u, 1u, 17u, 63u, 64u, 69u}) {
        std::vector<float> bad = good;
        bad[at] = std::numeric_limits<float>::quiet_NaN();
        int32_t token = -7;
        const Status status = sampler->Sample(bad.data(), &token);
        EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
        EXPECT_EQ(status.message(), "the logit of token " + std::to_string(at) + " is NaN");
        EXPECT_EQ(token, -7);
      }
      const Handle fresh = Make(70, config);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(Pick(sampler, good), Pick(fresh, good));
    }
  }
}

// Allows every token, and takes none as long as it is full.
class FullMask final : public LogitMask {
 public:
  explicit FullMask(uint32_t size) : size_(size) {}
  Status Apply(Span<float>) override { return Ok(); }
  Status Accept(int32_t) override { return is_full ? Error(TARN_CONTEXT_FULL, "full") : Ok(); }
  bool is_complete() const override { return false; }
  uint32_t vocab_size() const override { return size_; }
  bool is_full = false;

 private:
  uint32_t size_;
};

TEST(SamplerTest, ATokenThatTheMaskDoesNotTakeChangesNothing) {
  FullMask mask(64);
  SamplerConfig config = kPlain;
  config.mask = &mask;
  for (const uint32_t mirostat : {0u, 2u}) {
    config.mirostat = mirostat;
    const Handle sampler = Make(64, config), plain = Make(64, config);
    const std::vector<float> logits(64, 0.5f);
    for (int i = 0; i < 20; ++i) {
      int32_t token = -7;
      mask.is_full = true;
      EXPECT_EQ(sampler->Sample(logits.data(), &token).code(), TARN_CONTEXT_FULL);
      EXPECT_EQ(token, -7);
      mask.is_full = false;
      EXPECT_EQ(Pick(sampler, logits), Pick(plain, logits)) << i;
    }
  }
}

TEST(SamplerTest, AnotherSeedIsThatOfANewSampler) {
  SamplerConfig config = kPlain;
  for (const uint32_t mirostat : {0u, 2u}) {
    config.mirostat = mirostat;
    config.seed = 42;
    const Handle sampler = Make(64, config);
    std::vector<float> logits(64);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
    for (int i = 0; i < 30; ++i) Pick(sampler, logits);
    sampler->SetSeed(9);
    config.seed = 9;
    const Handle fresh = Make(64, config);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(Pick(sampler, logits), Pick(fresh, logits)) << i;
  }
}

TEST(SamplerTest, ConfigIsChecked) {
  const auto message = [](const SamplerConfig& config, uint32_t vocab_size = 10) -> std::string {
    const Result<Sampler*> sampler = Sampler::Create(vocab_size, config, DefaultAllocator());
    if (sampler.ok()) Sampler::Destroy(sampler.value());
    return sampler.status().message();
  };
  const float nan = std::nanf("");
  EXPECT_EQ(message({-1, 0, 1, 0, 1, 0, 0}), "temperature is -1, must be finite and at least 0");
  EXPECT_EQ(message({kInfinity, 0, 1, 0, 1, 0, 0}), "temperature is inf, must be finite and at least 0");
  EXPECT_EQ(message({nan, 0, 1, 0, 1, 0, 0}), "temperature is nan, must be finite and at least 0");
  EXPECT_EQ(message({1, 0, 0, 0, 1, 0, 0}), "top_p is 0, must be in (0, 1]");
  EXPECT_EQ(message({1, 0, 1.5f, 0, 1, 0, 0}), "top_p is 1.5, must be in (0, 1]");
  EXPECT_EQ(message({1, 0, 1, -0.5f, 1, 0, 0}), "min_p is -0.5, must be in [0, 1]");
  EXPECT_EQ(message({1, 0, 1, nan, 1, 0, 0}), "min_p is nan, must be in [0, 1]");
  EXPECT_EQ(message({1, 0, 1, 0, 0, 0, 0}), "repeat_penalty is 0, must be finite and above 0");
  EXPECT_EQ(message(kPlain, 0), "vocab_size is 0, must be in [1, 2147483647]");
  EXPECT_EQ(message(kPlain), "");
}

TEST(SamplerTest, OneAllocationAtCreationAndNoneLater) {
  const size_t vocab_size = 5000;
  Pcg32 random(12);
  const std::vector<float> logits = RandomLogits(&random, vocab_size, 100000);
  for (const float temperature : {0.0f, 0.8f}) {
    for (const uint32_t top_k : {0u, 40u}) {
      CountingAllocator memory{1};
      const Result<Sampler*> created = Sampler::Create(vocab_size, {temperature, top_k, 0.95f, 0.01f, 1.1f, 64, 13}, memory.get());
      ASSERT_TRUE(created.ok());
      const uint64_t before = AllocationCount();
      int32_t token = 0;
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(created.value()->Sample(logits.data(), &token).ok());
      EXPECT_EQ(AllocationCount(), before);
      Sampler::Destroy(created.value());
      EXPECT_EQ(memory.calls, 1);
      EXPECT_EQ(memory.live, 0);
    }
  }
  const uint64_t before = AllocationCount();
  delete new std::vector<int>(100);
  EXPECT_GT(AllocationCount(), before) << "the counter is dead";
}

TEST(SamplerTest, OutOfMemoryAtCreation) {
  CountingAllocator memory{0};
  const Result<Sampler*> created = Sampler::Create(100, kPlain, memory.get());
  EXPECT_EQ(created.status().code(), TARN_OUT_OF_MEMORY);
  EXPECT_EQ(memory.live, 0);
}

}  // namespace
}  // namespace tarn
