// Beam search against an enumeration of all outputs, and against the search written plainly over vectors, without early stop. The
// model is a table: logits that depend on the source and on all tokens so far. Its token 0 begins outputs, and is in none.
#include "runtime/text/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/text/log_sum_exp.h"
#include "runtime/text/pcg32.h"
#include "tests/text/allocation_count.h"
#include "tests/text/counting_allocator.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Tokens = std::vector<int32_t>;
using Handle = std::unique_ptr<BeamSearch, void (*)(BeamSearch*)>;

struct Output {
  Tokens tokens;
  double score;
};

Handle Make(const BeamConfig& config) {
  const Result<BeamSearch*> search = BeamSearch::Create(config, DefaultAllocator());
  EXPECT_TRUE(search.ok()) << search.status().message();
  return Handle(search.value(), BeamSearch::Destroy);
}

struct Table {
  uint32_t vocab_size;
  uint64_t seed;
  uint32_t levels = 1000003;  // few: many ties

  std::vector<float> Logits(uint32_t source, const Tokens& prefix) const {
    uint64_t hash = seed + source;
    for (const int32_t token : prefix) hash = hash * 6364136223846793005u + static_cast<uint64_t>(token) + 1442695040888963407u;
    Pcg32 random(hash);
    std::vector<float> logits(vocab_size);
    for (float& logit : logits) logit = static_cast<float>(random.Next() % levels) * (8.0f / static_cast<float>(levels));
    logits[0] = -kInfinity;
    return logits;
  }
};

// eos is token 1.
BeamConfig Config(const Table& table, uint32_t sources, uint32_t beams, uint32_t max_output_tokens, float alpha) {
  return {sources, beams, table.vocab_size, max_output_tokens, alpha, 0, 1};
}

// Feeds the search as a session would: a sequence that goes on from another has all that the other had. Rows that must not be read
// are NaN. `first_source` is the table's number of source 0.
std::vector<std::vector<Output>> Search(const BeamConfig& config, const Table& table, BeamSearch* search,
                                        uint32_t first_source = 0) {
  const uint32_t sequences = config.sources * config.beams;
  std::vector<Tokens> fed(sequences);
  std::vector<float> logits;
  while (!search->done()) {
    logits.assign(size_t{sequences} * table.vocab_size, kNan);
    for (uint32_t i = 0; i < sequences; ++i) {
      fed[i].push_back(search->tokens()[i]);
      const bool lives = fed[i].size() == 1 ? i % config.beams == 0 : fed[i].back() != config.bos_token;
      if (!lives) continue;
      const Tokens prefix(fed[i].begin() + 1, fed[i].end());
      const std::vector<float> row = table.Logits(first_source + i / config.beams, prefix);
      std::copy(row.begin(), row.end(), logits.begin() + static_cast<std::ptrdiff_t>(size_t{i} * table.vocab_size));
    }
    const Status status = search->Advance(logits.data());
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) break;
    std::vector<Tokens> reordered(sequences);
    for (uint32_t i = 0; i < sequences; ++i) {
      EXPECT_EQ(search->parents()[i] / config.beams, i / config.beams);
      reordered[i] = fed[search->parents()[i]];
    }
    fed = reordered;
  }
  std::vector<std::vector<Output>> outputs(config.sources);
  for (uint32_t source = 0; source < config.sources; ++source) {
    for (uint32_t rank = 0;; ++rank) {
      const Result<Hypothesis> found = search->Get(source, rank);
      if (!found.ok()) break;
      outputs[source].push_back({Tokens(found.value().tokens.begin(), found.value().tokens.end()), found.value().score});
    }
  }
  return outputs;
}

std::vector<std::vector<Output>> Search(const BeamConfig& config, const Table& table) {
  return Search(config, table, Make(config).get());
}

double Score(double log_prob, size_t length, float alpha) {
  return log_prob / std::pow((5.0 + static_cast<double>(length)) / 6.0, static_cast<double>(alpha));
}

void ExpectSame(const std::vector<Output>& found, const std::vector<Output>& wanted, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].tokens, wanted[i].tokens) << what << ", rank " << i;
    ASSERT_NEAR(found[i].score, wanted[i].score, tolerance) << what << ", rank " << i;
  }
}

// ---- Every output there is ----

void Enumerate(const BeamConfig& config, const Table& table, uint32_t source, const Tokens& prefix, double log_prob,
               std::vector<Output>* all) {
  const std::vector<float> logits = table.Logits(source, prefix);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (size_t id = 1; id < logits.size(); ++id) {
    const double next = log_prob + static_cast<double>(logits[id]) - std::log(sum);
    const double score = Score(next, prefix.size() + 1, config.length_penalty);
    Tokens longer = prefix;
    longer.push_back(static_cast<int32_t>(id));
    if (longer.back() == config.eos_token) {
      all->push_back({prefix, score});
    } else if (longer.size() == config.max_output_tokens) {
      all->push_back({longer, score});
    } else {
      Enumerate(config, table, source, longer, next, all);
    }
  }
}

bool BetterScore(const Output& a, const Output& b) { return a.score > b.score; }

TEST(BeamSearchTest, BeamAsWideAsAllOutputsFindsThemAllInOrder) {
  for (uint32_t vocab_size = 2; vocab_size <= 6; ++vocab_size) {
    for (uint32_t max_output_tokens = 1; max_output_tokens <= (vocab_size < 5 ? 6 : 4); ++max_output_tokens) {
      for (const float alpha : {0.0f, 0.6f, 1.0f, 2.5f}) {
        const Table table{vocab_size, 100 * vocab_size + max_output_tokens};
        BeamConfig config = Config(table, 2, 1, max_output_tokens, alpha);
        std::vector<Output> all[2];
        for (uint32_t source = 0; source < config.sources; ++source) {
          Enumerate(config, table, source, {}, 0, &all[source]);
          std::stable_sort(all[source].begin(), all[source].end(), BetterScore);
        }
        config.beams = static_cast<uint32_t>(all[0].size());
        const auto found = Search(config, table);
        for (uint32_t source = 0; source < config.sources; ++source) {
          ExpectSame(found[source], all[source], 1e-5,
                     "vocab " + std::to_string(vocab_size) + ", " + std::to_string(max_output_tokens) + " tokens");
        }
      }
    }
  }
}

// ---- The search, plainly ----

struct Beam {
  Tokens tokens;
  double log_prob;
};

struct Continuation {
  size_t beam;
  float logit;
  int32_t token;
  double log_prob;
};

// All continuations, the most probable first.
std::vector<Continuation> Continuations(const std::vector<Beam>& live, const Table& table, uint32_t source) {
  std::vector<Continuation> all;
  for (size_t beam = 0; beam < live.size(); ++beam) {
    const std::vector<float> logits = table.Logits(source, live[beam].tokens);
    LogSumExp sum{};
    EXPECT_TRUE(Summarize(logits.data(), logits.size(), &sum).ok());
    const double base = live[beam].log_prob - sum.log_sum;
    for (size_t id = 1; id < logits.size(); ++id) {
      const double relative = static_cast<double>(logits[id]) - static_cast<double>(sum.largest);
      all.push_back({beam, logits[id], static_cast<int32_t>(id), base + relative});
    }
  }
  // Beams and ids are in order already.
  std::stable_sort(all.begin(), all.end(), [](const Continuation& a, const Continuation& b) {
    if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
    return a.beam == b.beam && a.logit > b.logit;
  });
  return all;
}

// Runs to max_output_tokens, whatever is finished; only one beam ends with its first end.
std::vector<Output> PlainSearch(const BeamConfig& config, const Table& table, uint32_t source) {
  std::vector<Beam> live = {{{}, 0}};
  std::vector<Output> finished;
  for (size_t length = 1; length <= config.max_output_tokens; ++length) {
    const std::vector<Continuation> all = Continuations(live, table, source);
    std::vector<Beam> next;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const Continuation& continuation = all[rank];
      Tokens tokens = live[continuation.beam].tokens;
      if (continuation.token == config.eos_token) {
        if (rank < config.beams) finished.push_back({tokens, Score(continuation.log_prob, length, config.length_penalty)});
      } else if (next.size() < config.beams) {
        tokens.push_back(continuation.token);
        next.push_back({tokens, continuation.log_prob});
      }
    }
    live = next;
    if (config.beams == 1 && !finished.empty()) return finished;
  }
  for (const Beam& beam : live) {
    finished.push_back({beam.tokens, Score(beam.log_prob, config.max_output_tokens, config.length_penalty)});
  }
  std::stable_sort(finished.begin(), finished.end(), BetterScore);
  if (finished.size() > config.beams) finished.resize(config.beams);
  return finished;
}

TEST(BeamSearchTest, StoppingEarlyLosesNothing) {
  Pcg32 random(1);
  for (int round = 0; round < 600; ++round) {
    const uint32_t levels[] = {2, 5, 1000003};
    const Table table{2 + random.Next() % 40, random.Next(), levels[random.Next() % 3]};
    const float alphas[] = {0.0f, 0.6f, 1.0f, 3.0f};
    const BeamConfig config =
        Config(table, 1 + random.Next() % 3, 1 + random.Next() % 9, 1 + random.Next() % 12, alphas[random.Next() % 4]);
    const auto found = Search(config, table);
    for (uint32_t source = 0; source < config.sources; ++source) {
      ExpectSame(found[source], PlainSearch(config, table, source), 0, "round " + std::to_string(round));
    }
  }
}

TEST(BeamSearchTest, StopsWhenNothingCanBecomeBetter) {
  // The end has probability 0.99 at every step: two steps finish two outputs that no other can beat.
  const std::vector<float> logits = {-kInfinity, std::log(0.99f), std::log(0.006f), std::log(0.004f),
                                     -kInfinity, std::log(0.99f), std::log(0.006f), std::log(0.004f)};
  const Handle search = Make({1, 2, 4, 1000, 0, 0, 1});
  int steps = 0;
  for (; !search->done(); ++steps) ASSERT_TRUE(search->Advance(logits.data()).ok());
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(search->Get(0, 0).value().tokens.size(), 0);
  EXPECT_EQ(search->Get(0, 1).value().tokens.size(), 1);
}

TEST(BeamSearchTest, OneBeamIsGreedy) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Table table{2 + static_cast<uint32_t>(seed % 30), seed, seed % 2 == 0 ? 3u : 1000003u};
    const BeamConfig config = Config(table, 3, 1, 20, seed % 3 == 0 ? 0.0f : 0.6f);
    const auto found = Search(config, table);
    for (uint32_t source = 0; source < config.sources; ++source) {
      Tokens greedy;
      while (greedy.size() < config.max_output_tokens) {
        const std::vector<float> logits = table.Logits(source, greedy);
        const auto token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
        if (token == config.eos_token) break;
        greedy.push_back(token);
      }
      ASSERT_EQ(found[source].size(), 1);
      EXPECT_EQ(found[source][0].tokens, greedy) << "seed " << seed;
    }
  }
}

TEST(BeamSearchTest, OneBeamTakesTheLargerLogitWhereProbabilitiesRoundToTheSame) {
  const std::vector<float> logits = {0, 1e-30f, 2e-30f, 2e-30f, 50};
  const Handle search = Make({1, 1, 5, 9, 0, 0, -1});
  std::vector<float> without_largest = logits;
  without_largest[4] = -kInfinity;
  ASSERT_TRUE(search->Advance(without_largest.data()).ok());
  EXPECT_EQ(search->tokens()[0], 2);
  ASSERT_TRUE(search->Advance(logits.data()).ok());
  EXPECT_EQ(search->tokens()[0], 4);
}

TEST(BeamSearchTest, TiesGoToTheLowerBeamThenToTheLowerId) {
  const std::vector<float> logits(3 * 5, 1.0f);
  const Handle search = Make({1, 3, 5, 4, 1, 0, 4});
  ASSERT_TRUE(search->Advance(logits.data()).ok());
  EXPECT_EQ(Tokens(search->tokens().begin(), search->tokens().end()), (Tokens{0, 1, 2}));
  ASSERT_TRUE(search->Advance(logits.data()).ok());
  EXPECT_EQ(Tokens(search->tokens().begin(), search->tokens().end()), (Tokens{0, 1, 2}));
  EXPECT_EQ(std::vector<uint32_t>(search->parents().begin(), search->parents().end()), (std::vector<uint32_t>{0, 0, 0}));
  while (!search->done()) ASSERT_TRUE(search->Advance(logits.data()).ok());
  const Span<const int32_t> best = search->Get(0, 0).value().tokens;
  EXPECT_EQ(Tokens(best.begin(), best.end()), (Tokens{0, 0, 0, 0}));
}

// ---- The object ----

TEST(BeamSearchTest, SourcesDoNotSeeEachOther) {
  const Table table{20, 7};
  const auto together = Search(Config(table, 6, 4, 10, 0.6f), table);
  const BeamConfig alone = Config(table, 1, 4, 10, 0.6f);
  for (uint32_t source = 0; source < 6; ++source) {
    ExpectSame(Search(alone, table, Make(alone).get(), source)[0], together[source], 0, "source " + std::to_string(source));
  }
}

TEST(BeamSearchTest, WithoutEndTokenOutputsAreAsLongAsAllowed) {
  const Table table{9, 8};
  BeamConfig config = Config(table, 2, 3, 7, 0.6f);
  config.eos_token = -1;
  for (const std::vector<Output>& outputs : Search(config, table)) {
    ASSERT_EQ(outputs.size(), 3);
    for (const Output& output : outputs) EXPECT_EQ(output.tokens.size(), 7);
  }
}

TEST(BeamSearchTest, ResetBeginsAnew) {
  const Table table{20, 9};
  const BeamConfig config = Config(table, 3, 4, 10, 0.6f);
  const Handle search = Make(config);
  const auto first = Search(config, table, search.get());
  EXPECT_EQ(search->Advance(nullptr).code(), TARN_INVALID_ARGUMENT);  // done
  search->Reset();
  const auto again = Search(config, table, search.get());
  for (size_t source = 0; source < 3; ++source) ExpectSame(again[source], first[source], 0, "");
  search->Reset();
  EXPECT_FALSE(search->done());
  EXPECT_EQ(search->Get(0, 0).status().code(), TARN_NOT_FOUND);
  EXPECT_EQ(search->Get(3, 0).status().code(), TARN_INVALID_ARGUMENT);
}

TEST(BeamSearchTest, BadLogitsAreNamedAndChangeNothing) {
  const BeamConfig config{2, 2, 5, 9, 0.6f, 0, 1};
  const Handle search = Make(config);
  const std::vector<float> good = {0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0};
  ASSERT_TRUE(search->Advance(good.data()).ok());
  const Tokens tokens(search->tokens().begin(), search->tokens().end());
  for (const auto& [value, words] : {std::make_pair(kNan, "sequence 3: the logit of token 4 is NaN"),
                                     std::make_pair(kInfinity, "sequence 3: the logit of token 4 is inf")}) {
    std::vector<float> bad = good;
    bad.back() = value;
    const Status status = search->Advance(bad.data());
    EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
    EXPECT_STREQ(status.message(), words);
    EXPECT_EQ(Tokens(search->tokens().begin(), search->tokens().end()), tokens);
  }
  const Handle fresh = Make(config);
  ASSERT_TRUE(fresh->Advance(good.data()).ok());
  while (!fresh->done()) {
    ASSERT_TRUE(search->Advance(good.data()).ok());
    ASSERT_TRUE(fresh->Advance(good.data()).ok());
    EXPECT_EQ(Tokens(search->tokens().begin(), search->tokens().end()), Tokens(fresh->tokens().begin(), fresh->tokens().end()));
  }
  EXPECT_TRUE(search->done());
}

TEST(BeamSearchTest, ConfigIsChecked) {
  const auto message = [](const BeamConfig& config) -> std::string {
    const Result<BeamSearch*> search = BeamSearch::Create(config, DefaultAllocator());
    if (search.ok()) BeamSearch::Destroy(search.value());
    return search.status().message();
  };
  EXPECT_EQ(message({0, 1, 2, 1, 0, 0, 1}), "sources is 0, must be at least 1");
  EXPECT_EQ(message({1, 0, 2, 1, 0, 0, 1}), "beams is 0, must be at least 1");
  EXPECT_EQ(message({1, 1, 2, 0, 0, 0, 1}), "max_output_tokens is 0, must be at least 1");
  EXPECT_EQ(message({65536, 65536, 2, 1, 0, 0, 1}), "65536 sources of 65536 beams: must be at most 4294967295 sequences");
  EXPECT_EQ(message({1, 1, 0, 1, 0, 0, 1}), "vocab_size is 0, must be in [1, 2147483647]");
  EXPECT_EQ(message({1, 1, 2, 1, -0.5f, 0, 1}), "length_penalty is -0.5, must be finite and at least 0");
  EXPECT_EQ(message({1, 1, 2, 1, kNan, 0, 1}), "length_penalty is nan, must be finite and at least 0");
  EXPECT_EQ(message({1, 1, 2, 1, 0, -1, 1}), "bos_token is -1, must be in [0, 2)");
  EXPECT_EQ(message({1, 1, 2, 1, 0, 2, 1}), "bos_token is 2, must be in [0, 2)");
  EXPECT_EQ(message({1, 1, 2, 1, 0, 0, -2}), "eos_token is -2, must be in [-1, 2)");
  EXPECT_EQ(message({1, UINT32_MAX, 2, UINT32_MAX, 0, 0, 1}),
            "beam search: 1 sources of 4294967295 beams and 4294967295 tokens are more than memory can address");
  EXPECT_EQ(message({1, 1, 2, 1, 0, 0, 1}), "");
}

TEST(BeamSearchTest, OneAllocationOfTheSizeThatWasToldAndNoneLater) {
  const BeamConfig config{8, 4, 5000, 50, 0.6f, 0, 1};
  Pcg32 random(12);
  std::vector<float> logits(size_t{8} * 4 * 5000);
  for (float& logit : logits) logit = static_cast<float>(random.NextDouble());
  CountingAllocator memory{1};
  const Result<BeamSearch*> created = BeamSearch::Create(config, memory.get());
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(memory.size_bytes, BeamSearch::SizeBytes(config).value());
  const uint64_t before = AllocationCount();
  while (!created.value()->done()) ASSERT_TRUE(created.value()->Advance(logits.data()).ok());
  ASSERT_TRUE(created.value()->Get(0, 0).ok());
  EXPECT_EQ(AllocationCount(), before);
  BeamSearch::Destroy(created.value());
  EXPECT_EQ(memory.calls, 1);
  EXPECT_EQ(memory.live, 0);
  CountingAllocator none{0};
  EXPECT_EQ(BeamSearch::Create(config, none.get()).status().code(), TARN_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace tarn
