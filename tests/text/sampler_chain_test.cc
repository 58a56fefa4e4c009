// The whole chain against sampler_reference.cc, and its draws against exact probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/text/sampler.h"
#include "tests/text/allocation_count.h"
#include "tests/text/counting_allocator.h"
#include "tests/text/sampler_reference.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kBreakers[] = {3, 1};
constexpr int32_t kBanned[] = {0, 5};
constexpr TokenBias kBiases[] = {{2, 1.5f}, {4, -2}, {2, 0.25f}};

using Handle = std::unique_ptr<Sampler, void (*)(Sampler*)>;

SamplerConfig Plain(uint64_t seed = 42) { return {1.0f, 0, 1.0f, 0.0f, 1.0f, 0, seed}; }

// Every stage at once.
SamplerConfig Everything() {
  SamplerConfig config = {0.9f, 40, 0.98f, 0.01f, 1.2f, 16, 7};
  config.frequency_penalty = 0.2f;
  config.presence_penalty = 0.1f;
  config.dry_multiplier = 0.8f;
  config.dry_last_n = 32;
  config.dry_breakers = kBreakers;
  config.top_n_sigma = 2;
  config.typical_p = 0.97f;
  config.xtc_probability = 0.4f;
  config.xtc_threshold = 0.08f;
  config.dynatemp_range = 0.4f;
  config.dynatemp_exponent = 1.3f;
  config.logit_bias = kBiases;
  config.banned_tokens = kBanned;
  config.edit_logits = [](void*, float* logits, size_t size) { logits[size / 2] -= 1; };
  return config;
}

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

std::vector<float> RandomLogits(Pcg32* random, size_t size, double spread) {
  std::vector<float> logits(size);
  for (float& logit : logits) logit = static_cast<float>(spread * (random->NextDouble() - 0.5));
  return logits;
}

// Each stage is on or off, with one of a few values.
SamplerConfig RandomConfig(Pcg32* random) {
  const auto one_of = [&](std::initializer_list<float> values) { return values.begin()[random->Next() % values.size()]; };
  const auto share = [&](std::initializer_list<float> values) { return random->Next() % 2 == 0 ? 1.0f : one_of(values); };
  SamplerConfig config = {one_of({0.3f, 0.8f, 1, 2}),
                          random->Next() % 2 == 0 ? 0 : 1 + random->Next() % 60,
                          share({0.3f, 0.9f, 0.99f}),
                          1 - share({0.5f, 0.9f, 0.99f}),
                          share({0.7f, 1.3f}),
                          random->Next() % 20,
                          random->Next()};
  config.frequency_penalty = one_of({0, 0, 0.3f, -0.2f});
  config.presence_penalty = one_of({0, 0, 0.5f, -0.1f});
  config.dry_multiplier = one_of({0, 0.4f, 2});
  config.dry_base = one_of({1, 1.75f, 3});
  config.dry_allowed_length = 1 + random->Next() % 3;
  config.dry_last_n = 1 + random->Next() % 40;
  config.top_n_sigma = one_of({0, 0, 0.5f, 1, 2});
  config.typical_p = share({0.2f, 0.8f, 0.99f});
  config.xtc_probability = one_of({0, 0, 0.5f, 1});
  config.xtc_threshold = one_of({0.02f, 0.1f, 0.3f});
  config.dynatemp_range = one_of({0, 0, 0.5f, 1});
  config.dynatemp_exponent = one_of({0.5f, 1, 2});
  config.mirostat = random->Next() % 4 == 0 ? 2 : 0;
  config.mirostat_tau = one_of({0.5f, 2, 5});
  config.mirostat_eta = one_of({0.1f, 1});
  if (random->Next() % 2 == 0) config.dry_breakers = kBreakers;
  if (random->Next() % 3 == 0) config.banned_tokens = kBanned;
  if (random->Next() % 3 == 0) config.logit_bias = kBiases;
  return config;
}

TEST(SamplerChain, EveryTokenIsThatOfTheReference) {
  Pcg32 random(30);
  for (int round = 0; round < 600; ++round) {
    // Few tokens repeat themselves often, which DRY and penalties are about.
    const size_t vocab_size = round % 3 == 0 ? 6 + random.Next() % 4 : 6 + random.Next() % 200;
    SamplerConfig config = round == 0 ? Everything() : RandomConfig(&random);
    if (round % 10 == 9) config.temperature = 0;
    const Handle sampler = Make(vocab_size, config);
    SamplerReference reference(config);
    for (int step = 0; step < 40; ++step) {
      std::vector<float> logits = RandomLogits(&random, vocab_size, 1 + 8 * random.NextDouble());
      for (size_t i = 7; i < vocab_size; i += 3) logits[i] = round % 5 == 0 ? -kInfinity : logits[i];
      ASSERT_EQ(Pick(sampler, logits), reference.Sample(logits)) << "round " << round << " step " << step;
      if (step % 8 == 7) {  // a prompt in between
        for (const int32_t token : {2, 4, 1, 2, 4, 1}) {
          sampler->Accept(token);
          reference.Accept(token);
        }
      }
    }
  }
}

TEST(SamplerChain, DryFindsTheRepetitionsOfTheReference) {
  // Two tokens and a long window: matches of every length, overlapping ones too. Greedy over equal logits shows each penalty.
  Pcg32 random(31);
  SamplerConfig config = Plain();
  config.temperature = 0;
  config.dry_multiplier = 0.01f;
  config.dry_base = 1.01f;
  config.dry_allowed_length = 1;
  config.dry_last_n = 100;
  for (int round = 0; round < 30; ++round) {
    const Handle sampler = Make(4, config);
    SamplerReference reference(config);
    for (int step = 0; step < 200; ++step) {
      const std::vector<float> logits = RandomLogits(&random, 4, 0.05);
      ASSERT_EQ(Pick(sampler, logits), reference.Sample(logits)) << "round " << round << " step " << step;
      const int32_t token = static_cast<int32_t>(random.Next() % (round % 2 == 0 ? 2 : 3));
      sampler->Accept(token);
      reference.Accept(token);
    }
  }
}

// The point that a chi-square sum exceeds with probability 1e-6 (Wilson and Hilferty 1931).
double Critical(double freedom) {
  const double z = 4.753424;
  return freedom * std::pow(1 - 2 / (9 * freedom) + z * std::sqrt(2 / (9 * freedom)), 3);
}

constexpr int kDraws = 100000;

// `counts` of kDraws against probabilities; rare tokens count together.
void ExpectDistribution(const std::vector<int>& counts, const std::vector<double>& probabilities, const std::string& what) {
  double chi_square = 0, rest_expected = 0;
  int bins = 0, rest = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const double expected = kDraws * probabilities[id];
    if (expected == 0) {
      EXPECT_EQ(counts[id], 0) << what << ": token " << id << " was dropped";
    } else if (expected < 10) {
      rest += counts[id];
      rest_expected += expected;
    } else {
      chi_square += (counts[id] - expected) * (counts[id] - expected) / expected;
      ++bins;
    }
  }
  if (rest_expected >= 10) {
    chi_square += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
    ++bins;
  }
  ASSERT_GE(bins, 2) << what;
  EXPECT_LT(chi_square, Critical(bins - 1)) << what << ", " << bins << " bins";
}

std::vector<double> Probabilities(const SamplerReference& reference, const std::vector<float>& logits, double xtc_probability) {
  std::vector<double> sum(logits.size());
  for (const bool fires : {false, true}) {
    const double weight = fires ? xtc_probability : 1 - xtc_probability;
    if (weight == 0) continue;
    for (const Choice& choice : reference.Distribution(logits, fires))
      sum[static_cast<size_t>(choice.id)] += weight * choice.probability;
  }
  return sum;
}

struct Case {
  std::string name;
  SamplerConfig config;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, auto set) {
    SamplerConfig config = Plain(1000 + cases.size());
    set(&config);
    cases.push_back({name, config});
  };
  add("plain", [](SamplerConfig*) {});
  add("temperature", [](SamplerConfig* c) { c->temperature = 0.6f; });
  add("logit bias", [](SamplerConfig* c) { c->logit_bias = kBiases; });
  add("ban", [](SamplerConfig* c) { c->banned_tokens = kBanned; });
  add("callback", [](SamplerConfig* c) { c->edit_logits = [](void*, float* logits, size_t) { logits[7] += 2; }; });
  add("repetition", [](SamplerConfig* c) { c->repeat_penalty = 1.5f; });
  add("frequency", [](SamplerConfig* c) { c->frequency_penalty = 0.7f; });
  add("presence", [](SamplerConfig* c) { c->presence_penalty = 1; });
  add("DRY", [](SamplerConfig* c) { c->dry_multiplier = 1; });
  add("top-n-sigma", [](SamplerConfig* c) { c->top_n_sigma = 1; });
  add("top-k", [](SamplerConfig* c) { c->top_k = 6; });
  add("typical", [](SamplerConfig* c) { c->typical_p = 0.6f; });
  add("top-p", [](SamplerConfig* c) { c->top_p = 0.8f; });
  add("min-p", [](SamplerConfig* c) { c->min_p = 0.1f; });
  add("XTC", [](SamplerConfig* c) {
    c->xtc_probability = 0.3f;
    c->xtc_threshold = 0.05f;
  });
  add("dynamic temperature", [](SamplerConfig* c) { c->dynatemp_range = 0.8f; });
  add("typical and top-p", [](SamplerConfig* c) {
    c->typical_p = 0.9f;
    c->top_p = 0.8f;
  });
  add("defaults of the C API", [](SamplerConfig* c) { *c = {0.8f, 40, 0.95f, 0.05f, 1, 64, c->seed}; });
  add("everything", [](SamplerConfig* c) {
    *c = Everything();
    c->top_k = 20;
    c->typical_p = 0.99f;
  });
  return cases;
}

TEST(SamplerChain, DrawsOfEveryStageFollowTheProbabilities) {
  Pcg32 random(32);
  const std::vector<float> logits = RandomLogits(&random, 30, 5);
  // Accepted before each draw, so that all see the same window: "8 9 10" stands twice, 11 followed.
  const std::vector<int32_t> window = {8, 9, 10, 11, 2, 2, 8, 9, 10};
  for (Case& one : Cases()) {
    one.config.repeat_last_n = one.config.dry_last_n = static_cast<uint32_t>(window.size());
    const Handle sampler = Make(logits.size(), one.config);
    SamplerReference reference(one.config);
    for (const int32_t token : window) reference.Accept(token);
    std::vector<int> counts(logits.size());
    for (int i = 0; i < kDraws; ++i) {
      for (const int32_t token : window) sampler->Accept(token);
      ++counts[static_cast<size_t>(Pick(sampler, logits))];
    }
    ExpectDistribution(counts, Probabilities(reference, logits, double{one.config.xtc_probability}), one.name);
  }
}

TEST(SamplerChain, FirstDrawsOfMirostatFollowTheProbabilities) {
  // Later draws depend on earlier ones: here every draw is the first of a sampler, with a seed of its own.
  Pcg32 random(33), seeds(34);
  const std::vector<float> logits = RandomLogits(&random, 30, 5);
  for (const float temperature : {1.0f, 0.7f}) {
    SamplerConfig config = Plain();
    config.mirostat = 2;
    config.mirostat_tau = 2;
    config.temperature = temperature;
    std::vector<int> counts(logits.size());
    for (int i = 0; i < kDraws; ++i) {
      config.seed = (uint64_t{seeds.Next()} << 32) | seeds.Next();
      ++counts[static_cast<size_t>(Pick(Make(logits.size(), config), logits))];
    }
    ExpectDistribution(counts, Probabilities(SamplerReference(config), logits, 0), "Mirostat");
  }
}

TEST(SamplerChain, MirostatHoldsTheSurpriseAtTau) {
  Pcg32 random(35);
  for (const float tau : {1.5f, 3.0f}) {
    SamplerConfig config = Plain();
    config.mirostat = 2;
    config.mirostat_tau = tau;
    const Handle sampler = Make(500, config);
    SamplerReference reference(config);
    double before = reference.mu(), surprise = 0;
    constexpr int kSteps = 5000;
    for (int i = 0; i < kSteps; ++i) {
      const std::vector<float> logits = RandomLogits(&random, 500, 12);
      ASSERT_EQ(Pick(sampler, logits), reference.Sample(logits));
      surprise += (before - reference.mu()) / double{config.mirostat_eta} + double{tau};
      before = reference.mu();
    }
    EXPECT_NEAR(surprise / kSteps, double{tau}, 0.05);
  }
}

TEST(SamplerChain, ResetAndSeedRepeatEverything) {
  Pcg32 random(36);
  const std::vector<float> logits = RandomLogits(&random, 300, 8);
  const auto run = [&](const Handle& sampler) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 100; ++i) tokens.push_back(Pick(sampler, logits));
    return tokens;
  };
  SamplerConfig mirostat = Plain();
  mirostat.mirostat = 2;
  for (SamplerConfig config : {Everything(), mirostat}) {
    const Handle sampler = Make(logits.size(), config);
    const std::vector<int32_t> tokens = run(sampler);
    EXPECT_NE(run(sampler), tokens);
    sampler->Reset();
    EXPECT_EQ(run(sampler), tokens);
    EXPECT_EQ(run(Make(logits.size(), config)), tokens);
    config.seed += 1;
    EXPECT_NE(run(Make(logits.size(), config)), tokens);
  }
}

TEST(SamplerChain, ListsAreCopied) {
  TokenBias biases[] = {{1, 50}};
  int32_t banned[] = {2};
  SamplerConfig config = Plain();
  config.temperature = 0;
  config.logit_bias = biases;
  config.banned_tokens = banned;
  const Handle sampler = Make(3, config);
  biases[0] = {0, 90};
  banned[0] = 1;
  EXPECT_EQ(Pick(sampler, {0, 0, 60}), 1);
}

TEST(SamplerChain, InfiniteLogitsGoThroughEveryStage) {
  SamplerConfig mirostat = Plain();
  mirostat.mirostat = 2;
  SamplerConfig everything = Everything();
  everything.edit_logits = nullptr;
  for (const SamplerConfig& config : {everything, mirostat}) {
    const Handle sampler = Make(8, config);
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(Pick(sampler, {0, 1, 2, kInfinity, 3e38f, 5, -kInfinity, -3e38f}), 3);
      ASSERT_EQ(Pick(sampler, {-kInfinity, -kInfinity, -kInfinity, -5, -kInfinity, -kInfinity, -kInfinity, -kInfinity}), 3);
    }
  }
}

TEST(SamplerChain, ErrorsChangeNothing) {
  const SamplerConfig config = Everything();
  const Handle sampler = Make(50, config), untouched = Make(50, config);
  Pcg32 random(37);
  for (int i = 0; i < 20; ++i) {
    std::vector<float> logits = RandomLogits(&random, 50, 6);
    std::vector<float> bad = logits;
    bad[40] = NAN;
    int32_t token = -7;
    EXPECT_STREQ(sampler->Sample(bad.data(), &token).message(), "the logit of token 40 is NaN");
    bad.assign(50, -kInfinity);
    EXPECT_EQ(sampler->Sample(bad.data(), &token).code(), TARN_INVALID_ARGUMENT);
    EXPECT_EQ(token, -7);
    ASSERT_EQ(Pick(sampler, logits), Pick(untouched, logits));
  }
}

TEST(SamplerChain, ConfigIsChecked) {
  const auto message = [](auto set) {
    SamplerConfig config = Plain();
    set(&config);
    const Result<Sampler*> created = Sampler::Create(10, config, DefaultAllocator());
    if (created.ok()) Sampler::Destroy(created.value());
    return std::string(created.status().message());
  };
  struct Bad {
    float SamplerConfig::*field;
    float value;
    const char* message;
  };
  const Bad kBad[] = {
      {&SamplerConfig::frequency_penalty, kInfinity, "frequency_penalty is inf, must be finite"},
      {&SamplerConfig::presence_penalty, NAN, "presence_penalty is nan, must be finite"},
      {&SamplerConfig::dry_multiplier, -1, "dry_multiplier is -1, must be finite and at least 0"},
      {&SamplerConfig::dry_base, 0.5f, "dry_base is 0.5, must be finite and at least 1"},
      {&SamplerConfig::top_n_sigma, -1, "top_n_sigma is -1, must be finite and at least 0"},
      {&SamplerConfig::typical_p, 0, "typical_p is 0, must be in (0, 1]"},
      {&SamplerConfig::typical_p, 1.5f, "typical_p is 1.5, must be in (0, 1]"},
      {&SamplerConfig::xtc_probability, 2, "xtc_probability is 2, must be in [0, 1]"},
      {&SamplerConfig::xtc_threshold, -0.5f, "xtc_threshold is -0.5, must be in (0, 1]"},
      {&SamplerConfig::dynatemp_range, -1, "dynatemp_range is -1, must be finite and at least 0"},
      {&SamplerConfig::dynatemp_exponent, 0, "dynatemp_exponent is 0, must be finite and above 0"},
      {&SamplerConfig::mirostat_tau, 0, "mirostat_tau is 0, must be finite and above 0"},
      {&SamplerConfig::mirostat_eta, kInfinity, "mirostat_eta is inf, must be finite and above 0"},
  };
  for (const Bad& bad : kBad) EXPECT_EQ(message([&](SamplerConfig* c) { c->*bad.field = bad.value; }), bad.message);
  EXPECT_EQ(message([](SamplerConfig* c) { c->dry_allowed_length = 0; }), "dry_allowed_length is 0, must be at least 1");
  EXPECT_EQ(message([](SamplerConfig* c) { c->mirostat = 1; }), "mirostat is 1, must be 0 (off) or 2");
  static const TokenBias kInfinite[] = {{4, kInfinity}}, kOutside[] = {{1, 1}, {10, 1}};
  static const int32_t kNegative[] = {0, -1}, kMany[11] = {};
  EXPECT_EQ(message([](SamplerConfig* c) { c->logit_bias = kInfinite; }), "logit_bias: the bias of token 4 is inf, must be finite");
  EXPECT_EQ(message([](SamplerConfig* c) { c->logit_bias = kOutside; }), "logit_bias[1] is token 10, expected 0 to 9");
  EXPECT_EQ(message([](SamplerConfig* c) { c->banned_tokens = kNegative; }), "banned_tokens[1] is token -1, expected 0 to 9");
  EXPECT_EQ(message([](SamplerConfig* c) { c->dry_breakers = kMany; }),
            "dry_breakers has 11 tokens, must have at most 10, the size of the vocabulary");
  EXPECT_EQ(message([](SamplerConfig*) {}), "");
}

TEST(SamplerChain, OneAllocationAtCreationAndNoneLater) {
  Pcg32 random(38);
  const std::vector<float> logits = RandomLogits(&random, 5000, 10);
  SamplerConfig mirostat = Everything();
  mirostat.mirostat = 2;
  for (const SamplerConfig& config : {Everything(), mirostat}) {
    CountingAllocator memory{1};
    const Result<Sampler*> created = Sampler::Create(5000, config, memory.get());
    ASSERT_TRUE(created.ok());
    const uint64_t before = AllocationCount();
    int32_t token = 0;
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(created.value()->Sample(logits.data(), &token).ok());
    created.value()->Reset();
    EXPECT_EQ(AllocationCount(), before);
    Sampler::Destroy(created.value());
    EXPECT_EQ(memory.calls, 1);
    EXPECT_EQ(memory.live, 0);
  }
}

TEST(SamplerChain, WhatIsOffTakesNoMemory) {
  const auto bytes = [](const SamplerConfig& config) {
    CountingAllocator memory{1};
    Sampler::Destroy(Sampler::Create(1000, config, memory.get()).value());
    return memory.size_bytes;
  };
  SamplerConfig greedy = Plain();
  greedy.temperature = 0;
  EXPECT_LT(bytes(greedy), 1500u);  // the sampler itself
  SamplerConfig idle = greedy;      // values of stages that are off
  idle.repeat_last_n = idle.dry_last_n = 100000;
  EXPECT_EQ(bytes(idle), bytes(greedy));
  SamplerConfig dry = greedy;
  dry.dry_multiplier = 1;
  dry.dry_last_n = 2000;
  // Two arrays of 2000 numbers of 4 bytes, two of the vocabulary's.
  EXPECT_NEAR(static_cast<double>(bytes(dry) - bytes(greedy)), 4 * (2 * 2000 + 2 * 1000), 4 * 128);
}

TEST(SamplerChain, SizesAreThoseOf64BitsOnEveryMachine) {
  // More than a 32-bit machine addresses: an error, never a size that wrapped around.
  SamplerConfig config = Everything();
  config.repeat_last_n = config.dry_last_n = UINT32_MAX;
  CountingAllocator none{0};
  const Result<Sampler*> created = Sampler::Create(INT32_MAX, config, none.get());
  EXPECT_EQ(created.status().code(), TARN_OUT_OF_MEMORY);
  unsigned long long bytes = 0;
  ASSERT_EQ(std::sscanf(created.status().message(), "sampler: cannot allocate %llu", &bytes), 1) << created.status().message();
  EXPECT_GT(bytes, uint64_t{UINT32_MAX} * 8 + uint64_t{INT32_MAX} * 8);
}

}  // namespace
}  // namespace tarn
