// A run in steps has the bits of single steps, and so has what is left after some of them are taken back: logits, states, and all
// that follows. Speculation stands on this.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/bump.h"
#include "tests/support/loaded.h"

namespace tarn {
namespace {

using test::CausalCase;
using test::Loaded;
using test::SessionPointer;

constexpr uint32_t kVocab = 256;
constexpr uint64_t kMostTokens = 149;  // the smallest context of the models
constexpr uint32_t kMostSteps = 13;

// A log of a session, and its memory.
struct OwnLog {
  OwnLog(const Session& session, size_t max_steps, uint64_t most_copies = StepLog::kMostCopies) {
    Bump count;
    session.TakeStepLog(&count, max_steps, &log, most_copies);
    block = std::move(Block::Allocate(DefaultAllocator(), count.used(), "test").value());
    Bump bump(block.bytes());
    session.TakeStepLog(&bump, max_steps, &log, most_copies);
    EXPECT_EQ(bump.used(), count.used());
  }

  StepLog log;
  Block block;
};

// A session, and another one that takes the same tokens one by one.
class Pair {
 public:
  Pair(const Loaded& model, uint32_t threads, uint32_t seed, uint64_t most_copies)
      : session_(model.New({1, /*max_chunk=*/kMostSteps, kMostSteps, threads})),
        plain_(model.New({1, 16, 1, 1})),
        own_(*session_, kMostSteps, most_copies),
        random_(seed) {}

  // Some steps, of which some are kept.
  void Go() {
    const uint64_t room = kMostTokens - session_->instance().tokens_seen();
    const auto count = static_cast<size_t>(std::min<uint64_t>(room, 1 + random_() % kMostSteps));
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % kVocab);
    const size_t kept = random_() % 3 == 0 ? count : 1 + random_() % count;
    const Result<const float*> rows = session_->Steps(tokens.data(), count, &own_.log);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    session_->KeepSteps(kept, &own_.log);
    taken_back_ += count - kept;
    for (size_t i = 0; i < kept; ++i) {
      const Result<const float*> wanted = plain_->Prefill(&tokens[i], 1);
      ASSERT_TRUE(wanted.ok()) << wanted.status().message();
      ASSERT_EQ(std::memcmp(rows.value() + i * kVocab, wanted.value(), kVocab * sizeof(float)), 0)
          << "row " << i << " of " << count << " behind " << plain_->instance().tokens_seen() << " tokens";
    }
    if (random_() % 2 == 0) ExpectSameStates();  // or else steps may wait for the next run
  }

  // Both may go on in any other way.
  void Restart() {
    for (const SessionPointer* session : {&session_, &plain_}) {
      (*session)->Reset();
      std::vector<int32_t> prompt = {7, 1, 200, 33, 5, 9, 77};
      for (int32_t& token : prompt) ASSERT_TRUE((*session)->Prefill(&token, 1).ok());
    }
  }

  bool is_full() const { return session_->instance().tokens_seen() == kMostTokens; }
  size_t taken_back() const { return taken_back_; }

 private:
  void ExpectSameStates() {
    ASSERT_TRUE(session_->MakeWhole().ok());
    std::vector<uint8_t> state(session_->StateBytes()), wanted(plain_->StateBytes());
    ASSERT_EQ(state.size(), wanted.size());
    session_->CopyState(state.data());
    plain_->CopyState(wanted.data());
    ASSERT_TRUE(state == wanted) << "behind " << plain_->instance().tokens_seen() << " tokens";
  }

  const SessionPointer session_, plain_;
  OwnLog own_;
  std::mt19937 random_;
  size_t taken_back_ = 0;
};

void ExpectBitsOfSteps(const Loaded& model, uint32_t threads, uint64_t most_copies = StepLog::kMostCopies) {
  Pair pair(model, threads, /*seed=*/threads, most_copies);
  for (int text = 0; text < 2; ++text) {
    while (!pair.is_full()) {
      pair.Go();
      if (testing::Test::HasFatalFailure()) return;
    }
    pair.Restart();
  }
  EXPECT_GT(pair.taken_back(), 50u);
}

class StepsTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, StepsTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

constexpr convert::Precision kPrecisions[] = {convert::Precision::kF32,  convert::Precision::kF16,  convert::Precision::kInt8,
                                              convert::Precision::kInt4, convert::Precision::kInt3, convert::Precision::kInt2};

TEST_P(StepsTest, HaveTheBitsOfSingleStepsAndCanBeTakenBack) {
  for (const convert::Precision precision : kPrecisions) {
    for (const bool portable : {false, true}) {
      if (!test::RowsHaveBitsOfOne(precision, portable)) continue;
      SCOPED_TRACE(std::string(portable ? "portable" : "not portable") + ", precision " +
                   std::to_string(static_cast<int>(precision)));
      const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state, precision,
                         portable);
      ExpectBitsOfSteps(model, 1, portable ? 0 : StepLog::kMostCopies);  // 0: a place for the copy of one op
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  if (GetParam().attention.find("compressive_transformer") != std::string::npos) return;  // its means want keys without positions
  if (std::string(GetParam().heads).find("token_shift") != std::string::npos) return;     // has no rope
  const Loaded rope(test::ConfigText(GetParam().attention, "rope", GetParam().heads), GetParam().state, convert::Precision::kInt8);
  ExpectBitsOfSteps(rope, 2);
}

constexpr char kWide[] = R"({"task": "causal_lm", "vocab_size": 256, "hidden_size": 416, "num_layers": 1, "num_heads": 8,
  "intermediate_size": 1056, "hidden_act": "gelu", "norm": "layernorm", "norm_eps": 1e-5, "attention_bias": true,
  "tokenizer": "bytes", "position_embedding": "learned", "max_positions": 149, "attention": )";

// Widths at which dense layers use all of their tiles, and tails.
TEST(Steps, HaveTheBitsOfSingleStepsInWideLayers) {
  for (const char* attention : {test::kRfa, test::kAbc}) {
    for (const convert::Precision precision : kPrecisions) {
      for (const bool portable : {false, true}) {
        if (!test::RowsHaveBitsOfOne(precision, portable)) continue;
        SCOPED_TRACE(std::string(attention) + (portable ? " portable" : "") + ", precision " +
                     std::to_string(static_cast<int>(precision)));
        const Loaded model(std::string(kWide) + attention + "}", format::DType::F32, precision, portable);
        ExpectBitsOfSteps(model, 2);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// A state of 1.7 MB: there is no copy to put back where all steps stay.
TEST(Steps, HaveTheBitsOfSingleStepsInLargeStates) {
  const Loaded model(std::string(kWide) + R"({"system": "rfa", "feature_map": "gaussian", "num_features": 512, "gate": "forget"}})",
                     format::DType::F32, convert::Precision::kInt8);
  StepLog log;
  Bump count;
  const SessionPointer session = model.New({1, kMostSteps, kMostSteps, 1});
  session->TakeStepLog(&count, kMostSteps, &log);
  EXPECT_FALSE(log.has_all_copies);
  ExpectBitsOfSteps(model, 2);
}

// ---- Steps that wait in the log ----

// A session with 7 tokens, of which steps wait, and one that took the same tokens one by one.
class Waiting : public testing::Test {
 protected:
  void SetUp() override {
    Keep(session_.get(), &own_.log, 3);
    Keep(session_.get(), &own_.log, 4);
    for (const int32_t token : {1, 2, 3, 1, 2, 3, 4}) ASSERT_TRUE(plain_->Prefill(&token, 1).ok());
    ASSERT_TRUE(session_->instance().steps_wait(&own_.log));
  }

  static void Keep(Session* session, StepLog* log, size_t kept) {
    const int32_t tokens[4] = {1, 2, 3, 4};
    ASSERT_TRUE(session->Steps(tokens, 4, log).ok());
    session->KeepSteps(kept, log);
  }

  // Their next logits, and states.
  static void ExpectSame(Session* session, Session* plain) {
    const int32_t token = 9;
    const Result<const float*> found = session->Prefill(&token, 1), wanted = plain->Prefill(&token, 1);
    ASSERT_TRUE(found.ok() && wanted.ok());
    EXPECT_EQ(std::memcmp(found.value(), wanted.value(), kVocab * sizeof(float)), 0);
    EXPECT_EQ(Snapshot(*session), Snapshot(*plain));
  }

  static std::vector<uint8_t> Snapshot(const Session& session) {
    std::vector<uint8_t> snapshot(session.SnapshotBytes());
    EXPECT_TRUE(session.Save({snapshot.data(), snapshot.size()}).ok());
    return snapshot;
  }

  const Loaded model_{test::ConfigText(test::kRfa)};
  const SessionPointer session_ = model_.New({1, 8, 8, 1}), plain_ = model_.New({1, 8, 8, 1});
  OwnLog own_{*session_, 4, /*most_copies=*/0};
};

TEST_F(Waiting, AreTakenByTokens) { ExpectSame(session_.get(), plain_.get()); }

TEST_F(Waiting, AreTakenBySnapshots) {
  const uint64_t bytes = session_->SnapshotBytes();
  EXPECT_FALSE(session_->instance().steps_wait(&own_.log));
  EXPECT_EQ(bytes, plain_->SnapshotBytes());
  EXPECT_EQ(Snapshot(*session_), Snapshot(*plain_));
}

TEST_F(Waiting, AreTakenBySnapshotsOfASequence) {
  EXPECT_EQ(session_->SequenceSnapshotBytes(0), plain_->SequenceSnapshotBytes(0));
  EXPECT_FALSE(session_->instance().steps_wait(&own_.log));
}

TEST_F(Waiting, AreTakenByDeltas) {
  const SessionPointer fresh = model_.New({1, 8, 8, 1});
  const std::vector<uint8_t> base = Snapshot(*fresh);
  const Span<const uint8_t> bytes(base.data(), base.size());
  EXPECT_EQ(session_->DeltaBytes(bytes).value(), plain_->DeltaBytes(bytes).value());
  EXPECT_FALSE(session_->instance().steps_wait(&own_.log));
}

TEST_F(Waiting, AreTakenByForks) {
  const SessionPointer fork = model_.New({1, 8, 8, 1});
  ASSERT_TRUE(fork->CopyFrom(*session_).ok());
  ExpectSame(fork.get(), plain_.get());
}

TEST_F(Waiting, AreTakenByForksOfASequence) {
  const SessionPointer fork = model_.New({1, 8, 8, 1});
  ASSERT_TRUE(fork->CopySequence(0, *session_, 0).ok());
  ExpectSame(fork.get(), plain_.get());
}

TEST_F(Waiting, AreTakenByStepsOfAnotherLog) {
  OwnLog other(*session_, 4);
  Keep(session_.get(), &other.log, 2);
  const int32_t tokens[] = {1, 2};
  ASSERT_TRUE(plain_->Prefill(tokens, 1).ok() && plain_->Prefill(tokens + 1, 1).ok());
  ExpectSame(session_.get(), plain_.get());
}

// The log must not be read any more.
TEST_F(Waiting, AreForgottenWithTheStates) {
  const std::vector<uint8_t> snapshot = Snapshot(*plain_);
  own_.block = Block();
  ASSERT_TRUE(session_->Restore({snapshot.data(), snapshot.size()}).ok());
  EXPECT_FALSE(session_->instance().steps_wait(&own_.log));
  ExpectSame(session_.get(), plain_.get());
  session_->Reset();
  plain_->Reset();
  ExpectSame(session_.get(), plain_.get());
}

TEST_F(Waiting, OfAResetAreNotTakenByTheNextSteps) {
  session_->Reset();
  plain_->Reset();
  Keep(session_.get(), &own_.log, 2);
  const int32_t tokens[] = {1, 2};
  ASSERT_TRUE(plain_->Prefill(tokens, 1).ok() && plain_->Prefill(tokens + 1, 1).ok());
  ExpectSame(session_.get(), plain_.get());
}

// ---- What cannot be ----

// Some states are those before the run, others those behind it.
TEST(Steps, OtherCallsWaitForTheirEnd) {
  const Loaded model(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({1, 8, 8, 1});
  OwnLog own(*session, 4);
  const int32_t tokens[4] = {1, 2, 3, 4};
  ASSERT_TRUE(session->Steps(tokens, 4, &own.log).ok());
  EXPECT_EQ(session->Prefill(tokens, 1).status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(session->Steps(tokens, 4, &own.log).status().code(), TARN_INVALID_ARGUMENT);
  session->KeepSteps(3, &own.log);
  EXPECT_EQ(session->instance().tokens_seen(), 3u);
  EXPECT_TRUE(session->Prefill(tokens, 1).ok());
}

TEST(Steps, OfSeveralSequencesOrTooManyAreRefused) {
  const Loaded model(test::ConfigText(test::kRfa));
  StepLog log;
  const int32_t token = 1;
  const Result<const float*> several = model.New({2, 8, 8, 1})->Steps(&token, 1, &log);
  EXPECT_EQ(several.status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(several.status().message(), "the session has 2 sequences, 1 expected");
  const SessionPointer session = model.New({1, 8, 4, 1});
  log.max_steps = 8;
  const int32_t tokens[5] = {};
  const Result<const float*> many = session->Steps(tokens, 5, &log);
  EXPECT_EQ(many.status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(many.status().message(), "5 tokens in steps, at most 4 expected");
}

}  // namespace
}  // namespace tarn
