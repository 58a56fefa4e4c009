// Speculation writes the text of single steps: every causal variant, any sampler, right and wrong drafts.
#include "runtime/generation/speculation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/loaded.h"

namespace tarn {
namespace {

using test::CausalCase;
using test::Loaded;
using test::SessionPointer;
using Tokens = std::vector<int32_t>;
using SpeculationPointer = std::unique_ptr<Speculation, void (*)(Speculation*)>;
using SamplerPointer = std::unique_ptr<Sampler, void (*)(Sampler*)>;

constexpr uint32_t kVocab = 256;
constexpr size_t kContext = 149;  // the smallest context of the models
constexpr Limits kLimits = {1, /*max_chunk=*/16, /*max_output_rows=*/16, 1};
// Without a clock, and so cheap that weak drafts are tried as well.
constexpr SpeculationConfig kEager = {0, 256, nullptr, 0.05f};

SamplerPointer NewSampler(const SamplerConfig& config) {
  Result<Sampler*> sampler = Sampler::Create(kVocab, config, DefaultAllocator());
  EXPECT_TRUE(sampler.ok()) << sampler.status().message();
  return SamplerPointer(sampler.value(), Sampler::Destroy);
}

SamplerConfig Chain(float temperature) {
  SamplerConfig config{};
  config.temperature = temperature;
  config.top_p = 1;
  config.repeat_penalty = 1;
  return config;
}
SamplerConfig Greedy() { return Chain(0); }

SpeculationPointer New(Session* session, Sampler* sampler, const SpeculationConfig& config = kEager) {
  Result<Speculation*> created =
      Speculation::Create(session, {sampler, nullptr, nullptr, nullptr}, config, {{}, DefaultAllocator()});
  EXPECT_TRUE(created.ok()) << created.status().message();
  return SpeculationPointer(created.value(), Speculation::Destroy);
}

// A prompt that has something to copy.
Tokens Prompt(uint32_t seed) {
  std::mt19937 random(seed);
  Tokens line(3 + random() % 8), prompt;
  for (int32_t& token : line) token = static_cast<int32_t>(random() % kVocab);
  while (prompt.size() < 24) prompt.insert(prompt.end(), line.begin(), line.end());
  return prompt;
}

int32_t First(Session* session, Sampler* sampler, const Tokens& prompt) {
  const float* logits = session->Prefill(prompt.data(), prompt.size()).value();
  for (const int32_t token : prompt) sampler->Accept(token);
  int32_t token = 0;
  EXPECT_TRUE(sampler->Sample(logits, &token).ok());
  return token;
}

Tokens Plain(const Loaded& model, const SamplerConfig& config, const Tokens& prompt, size_t count) {
  const SessionPointer session = model.New(kLimits);
  const SamplerPointer sampler = NewSampler(config);
  Tokens text = {First(session.get(), sampler.get(), prompt)};
  while (text.size() < count) {
    const float* logits = session->Prefill(&text.back(), 1).value();
    int32_t token = 0;
    EXPECT_TRUE(sampler->Sample(logits, &token).ok());
    text.push_back(token);
  }
  return text;
}

struct Text {
  Tokens tokens;
  SpeculationStats stats;
};

Text Speculated(const Loaded& model, const SamplerConfig& config, const Tokens& prompt, size_t count,
                SpeculationConfig speculation = kEager) {
  const SessionPointer session = model.New(kLimits);
  const SamplerPointer sampler = NewSampler(config);
  const SpeculationPointer drafts = New(session.get(), sampler.get(), speculation);
  Text text;
  text.tokens = {First(session.get(), sampler.get(), prompt)};
  EXPECT_TRUE(drafts->Read(prompt.data(), prompt.size()).ok());
  while (text.tokens.size() < count) {
    int32_t tokens[16];
    size_t given = 0;
    const Status status = drafts->Step(text.tokens.back(), tokens, std::min<size_t>(16, count - text.tokens.size()), &given);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) break;
    text.tokens.insert(text.tokens.end(), tokens, tokens + given);
    EXPECT_EQ(session->instance().tokens_seen(), prompt.size() + text.tokens.size() - 1);
  }
  text.stats = drafts->stats();
  EXPECT_EQ(text.stats.runs + text.stats.accepted + 1, text.tokens.size());
  return text;
}

// ---- The text is that of single steps ----

class SpeculationTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, SpeculationTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(SpeculationTest, GreedyTextIsThatOfSteps) {
  uint64_t accepted = 0, refused = 0;
  for (const convert::Precision precision : {convert::Precision::kF32, convert::Precision::kInt8}) {
    const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state, precision,
                       /*portable=*/false);
    for (uint32_t seed = 0; seed < 5; ++seed) {
      const Tokens prompt = Prompt(seed);
      const size_t count = kContext - prompt.size();
      const Text text = Speculated(model, Greedy(), prompt, count);
      ASSERT_EQ(text.tokens, Plain(model, Greedy(), prompt, count)) << "prompt " << seed;
      accepted += text.stats.accepted;
      refused += text.stats.drafted - text.stats.accepted;
    }
  }
  EXPECT_GT(accepted + refused, 10u);
}

TEST_P(SpeculationTest, ADraftModelChangesNothing) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const Loaded other(test::ConfigText(test::kRfa));
  SamplerConfig chain = Chain(0.5f);
  chain.repeat_penalty = 1.1f;
  chain.repeat_last_n = 30;
  chain.seed = 9;
  for (const Loaded* draft : {&model, &other}) {
    const SessionPointer session = draft->New(kLimits);
    SpeculationConfig config = kEager;
    config.draft = session.get();
    const Tokens prompt = Prompt(4);
    const Text text = Speculated(model, chain, prompt, kContext - prompt.size(), config);
    ASSERT_EQ(text.tokens, Plain(model, chain, prompt, kContext - prompt.size()));
    // A model drafts for itself what its sampler picks, but for the rounding of chunks.
    if (draft == &model) {
      EXPECT_GT(text.stats.accepted, 60u);
    }
  }
}

// Drafts that are right are made as far as there is room; those of a model that knows nothing of the other one end, and are tried
// now and then.
TEST(Speculation, ADraftModelDraftsWhileThatIsWorthItsTime) {
  const Loaded model(test::ConfigText(test::kRfa)), other(test::ConfigText(test::kAbc));
  SamplerConfig flat = Chain(1.0f);
  flat.top_k = 0;
  flat.seed = 3;
  const Tokens prompt = Prompt(4);
  for (const bool is_same : {true, false}) {
    const SessionPointer session = (is_same ? model : other).New(kLimits);
    SpeculationConfig config = kEager;
    config.draft = session.get();
    config.row_cost = 0.1f;
    const size_t count = kContext - prompt.size();
    const Text text = Speculated(model, flat, prompt, count, config);
    if (is_same) {
      EXPECT_LT(text.stats.runs, count / 2);
    } else {
      EXPECT_LT(text.stats.drafted, count / 2);
      EXPECT_GT(text.stats.drafted, 0u);
    }
  }
}

TEST(Speculation, AnySamplerPicksTheTextOfSteps) {
  const Loaded model(test::ConfigText(test::kRfa), format::DType::F32, convert::Precision::kInt8);
  SamplerConfig warm = Chain(0.3f);
  warm.top_k = 40;
  warm.top_p = 0.95f;
  warm.min_p = 0.02f;
  SamplerConfig penalties = warm;
  penalties.repeat_penalty = 1.05f;
  penalties.repeat_last_n = 20;
  penalties.frequency_penalty = 0.05f;
  penalties.presence_penalty = 0.1f;
  SamplerConfig dry = Greedy();
  dry.dry_multiplier = 0.4f;
  dry.dry_base = 1.5f;
  dry.dry_allowed_length = 2;
  dry.dry_last_n = 100;
  SamplerConfig mirostat = warm;
  mirostat.mirostat = 2;
  mirostat.mirostat_tau = 1;
  mirostat.mirostat_eta = 0.1f;
  SamplerConfig xtc = warm;
  xtc.xtc_probability = 0.5f;
  xtc.xtc_threshold = 0.1f;
  uint64_t accepted = 0;
  for (SamplerConfig config : {warm, penalties, dry, mirostat, xtc}) {
    for (uint32_t seed = 0; seed < 8; ++seed) {
      config.seed = seed;
      const Tokens prompt = Prompt(seed);
      const Text text = Speculated(model, config, prompt, 300);
      ASSERT_EQ(text.tokens, Plain(model, config, prompt, 300)) << "seed " << seed;
      accepted += text.stats.accepted;
    }
  }
  EXPECT_GT(accepted, 100u);
}

// ---- The distribution is that of the model ----

// The chi-square statistic of counts under a distribution; cells of fewer than 5 expected are one.
struct ChiSquare {
  double statistic = 0;
  double freedom = -1;
};
ChiSquare Compare(const std::vector<double>& counts, const std::vector<double>& distribution) {
  double all = 0, rest_count = 0, rest = 0;
  for (const double count : counts) all += count;
  ChiSquare result;
  const auto add = [&](double count, double expected) {
    result.statistic += (count - expected) * (count - expected) / expected;
    ++result.freedom;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = all * distribution[i];
    if (expected >= 5) {
      add(counts[i], expected);
    } else {
      rest_count += counts[i];
      rest += expected;
    }
  }
  if (rest > 0) add(rest_count, rest);
  return result;
}
// The quantile of 1 - 1e-4 (Wilson and Hilferty 1931).
double Quantile(double freedom) {
  const double t = 2 / (9 * freedom), normal = 3.719;
  return freedom * std::pow(1 - t + normal * std::sqrt(t), 3);
}

std::vector<double> Softmax(const float* logits, double temperature) {
  const double most = *std::max_element(logits, logits + kVocab);
  std::vector<double> p(kVocab);
  double sum = 0;
  for (size_t i = 0; i < kVocab; ++i) sum += p[i] = std::exp((logits[i] - most) / temperature);
  for (double& value : p) value /= sum;
  return p;
}

TEST(Speculation, TokensHaveTheDistributionOfTheModel) {
  constexpr float kTemperature = 0.2f;
  const Loaded model(test::ConfigText(test::kRfa), format::DType::F32, convert::Precision::kInt8);
  const SessionPointer session = model.New(kLimits);
  // The draft behind the prompt is its second line; its first token is the most probable one, so that it is often right.
  Tokens prompt = Prompt(3);
  const int32_t fed = prompt[0];
  std::vector<uint8_t> start(session->StateBytes());
  ASSERT_TRUE(session->Prefill(prompt.data(), prompt.size()).ok());
  session->CopyState(start.data());
  const std::vector<double> first = Softmax(session->Prefill(&fed, 1).value(), kTemperature);
  const auto draft = static_cast<int32_t>(std::max_element(first.begin(), first.end()) - first.begin());
  const std::vector<double> second = Softmax(session->Prefill(&draft, 1).value(), kTemperature);

  const SamplerPointer sampler = NewSampler(Chain(kTemperature));
  const SpeculationPointer drafts = New(session.get(), sampler.get(), {2, 64, nullptr, 0.001f});
  std::vector<double> first_counts(kVocab), second_counts(kVocab);
  const Tokens copied = {prompt.back(), fed, draft, draft, prompt.back(), fed, draft, draft, prompt.back()};
  constexpr uint64_t kTexts = 20000;
  uint64_t accepted = 0;
  for (uint64_t seed = 0; seed < kTexts; ++seed) {
    session->SetState(start.data());
    sampler->SetSeed(seed);
    drafts->Reset();
    EXPECT_TRUE(drafts->Read(copied.data(), copied.size()).ok());
    int32_t tokens[3];
    size_t count = 0;
    ASSERT_TRUE(drafts->Step(fed, tokens, 3, &count).ok());
    ++first_counts[tokens[0]];
    if (tokens[0] != draft) continue;
    ++accepted;
    if (count > 1) ++second_counts[tokens[1]];
  }
  EXPECT_EQ(drafts->stats().drafted, 2 * kTexts);
  EXPECT_GT(accepted, kTexts / 50);
  EXPECT_LT(accepted, kTexts - kTexts / 50);
  for (const ChiSquare& found : {Compare(first_counts, first), Compare(second_counts, second)}) {
    EXPECT_GT(found.freedom, 3);
    EXPECT_LT(found.statistic, Quantile(found.freedom)) << found.freedom << " degrees of freedom";
  }
}

// ---- Ends, bounds, errors ----

class OneSession : public testing::Test {
 protected:
  const Loaded model{test::ConfigText(test::kSoftmax)};
  const SessionPointer session = model.New(kLimits);
  const SamplerPointer sampler = NewSampler(Greedy());
};

TEST_F(OneSession, AFullContextIsFilledToItsLastToken) {
  const SpeculationPointer drafts = New(session.get(), sampler.get());
  const Tokens prompt = Prompt(1);
  int32_t token = First(session.get(), sampler.get(), prompt);
  EXPECT_TRUE(drafts->Read(prompt.data(), prompt.size()).ok());
  int32_t tokens[16];
  size_t count = 0;
  while (session->instance().tokens_seen() < 150) {
    ASSERT_TRUE(drafts->Step(token, tokens, 16, &count).ok());
    token = tokens[count - 1];
  }
  EXPECT_EQ(drafts->Step(token, tokens, 16, &count).code(), TARN_CONTEXT_FULL);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(session->instance().tokens_seen(), 150u);
}

struct Watched {
  Tokens tokens;
  int32_t last;
};

TEST_F(OneSession, ATokenCanBeTheLast) {
  Watched watched{{}, 0};
  const auto pick = [](void*, const float*, size_t) { return 7; };
  const auto on_token = [](void* context, int32_t token, const float* logits) {
    auto* seen = static_cast<Watched*>(context);
    EXPECT_NE(logits, nullptr);
    seen->tokens.push_back(token);
    return seen->tokens.size() == static_cast<size_t>(seen->last) ? 1 : 0;
  };
  Result<Speculation*> created =
      Speculation::Create(session.get(), {nullptr, pick, on_token, &watched}, kEager, {{}, DefaultAllocator()});
  ASSERT_TRUE(created.ok()) << created.status().message();
  const SpeculationPointer drafts(created.value(), Speculation::Destroy);
  const Tokens prompt(30, 7);
  ASSERT_TRUE(session->Prefill(prompt.data(), prompt.size() - 1).ok());
  EXPECT_TRUE(drafts->Read(prompt.data(), prompt.size() - 1).ok());
  watched.last = 4;
  int32_t tokens[16];
  size_t count = 0;
  ASSERT_TRUE(drafts->Step(7, tokens, 16, &count).ok());
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(watched.tokens, Tokens(4, 7));
  EXPECT_EQ(session->instance().tokens_seen(), prompt.size() - 1 + 4);
  ASSERT_TRUE(drafts->Step(7, tokens, 2, &count).ok());
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(session->instance().tokens_seen(), prompt.size() - 1 + 6);
}

TEST_F(OneSession, ACancelledStepChangesNothing) {
  const SpeculationPointer drafts = New(session.get(), sampler.get());
  const Tokens prompt(30, 7);
  int32_t token = First(session.get(), sampler.get(), prompt);
  EXPECT_TRUE(drafts->Read(prompt.data(), prompt.size()).ok());
  int32_t tokens[16];
  size_t count = 0;
  session->Cancel();
  EXPECT_EQ(drafts->Step(token, tokens, 16, &count).code(), TARN_CANCELLED);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(session->instance().tokens_seen(), prompt.size());
  Tokens text = {token};
  while (text.size() < 40) {
    ASSERT_TRUE(drafts->Step(text.back(), tokens, std::min<size_t>(16, 40 - text.size()), &count).ok());
    text.insert(text.end(), tokens, tokens + count);
  }
  EXPECT_EQ(text, Plain(model, Greedy(), prompt, 40));
}

TEST_F(OneSession, BytesAreExact) {
  const Picker picker = {sampler.get(), nullptr, nullptr, nullptr};
  const uint64_t bytes = Speculation::Measure(session.get(), picker, kEager).value();
  Block block = std::move(Block::Allocate(DefaultAllocator(), bytes, "test").value());
  const Status less =
      Speculation::Create(session.get(), picker, kEager, {block.bytes().subspan(0, bytes - 1), DefaultAllocator()}).status();
  EXPECT_EQ(less.code(), TARN_BUFFER_TOO_SMALL);
  EXPECT_EQ(std::string(less.message()),
            "speculation: the block has " + std::to_string(bytes - 1) + " bytes, " + std::to_string(bytes) + " expected");
  const Result<Speculation*> created = Speculation::Create(session.get(), picker, kEager, {block.bytes(), DefaultAllocator()});
  ASSERT_TRUE(created.ok());
  Speculation::Destroy(created.value());
}

TEST_F(OneSession, WhatDoesNotFitIsNamed) {
  const auto expect = [&](Session* of, const Picker& picker, const SpeculationConfig& config, const std::string& words) {
    const Status status = Speculation::Measure(of, picker, config).status();
    EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
  };
  const Picker picker = {sampler.get(), nullptr, nullptr, nullptr};
  expect(model.New({1, 64, 1, 1}).get(), picker, kEager, "max_chunk 64 and max_logits_rows 1, 2 expected at least");
  expect(model.New({2, 16, 16, 1}).get(), picker, kEager, "the session has 2 sequences, 1 expected");
  expect(session.get(), picker, {16, 64, nullptr, 0}, "max_draft is 16, at most 15 expected");
  expect(session.get(), picker, {2, 1u << 30, nullptr, 0}, "history_tokens is 1073741824, at most 16777216 expected");
  expect(session.get(), picker, {2, 64, nullptr, -1}, "row_cost is -1");
  expect(session.get(), picker, {2, 64, session.get(), 0}, "draft is the session itself");
  expect(session.get(), {nullptr, nullptr, nullptr, nullptr}, kEager, "sampler and pick: one of them expected");
  const SessionPointer batch = model.New({2, 16, 16, 1});
  expect(session.get(), picker, {2, 64, batch.get(), 0}, "draft: the session has 2 sequences");
  Sampler* other = Sampler::Create(100, Greedy(), DefaultAllocator()).value();
  expect(session.get(), {other, nullptr, nullptr, nullptr}, kEager, "the sampler is for 100 tokens, the model has 256");
  Sampler::Destroy(other);
}

}  // namespace
}  // namespace tarn
