// Going back is exact: whatever was rewound, the session goes on as one that was given the tokens that are left, in the same calls.
#include "runtime/generation/checkpoints.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/loaded.h"

namespace tarn {
namespace {

using Bits = std::vector<uint32_t>;  // of logits
using Call = std::vector<int32_t>;   // [batch, count]
using test::CausalCase;
using test::Loaded;
using test::SessionPointer;
using CheckpointsPointer = std::unique_ptr<Checkpoints, void (*)(Checkpoints*)>;

constexpr uint32_t kVocab = 256;
constexpr uint64_t kMostTokens = 149;  // the smallest context of the models

CheckpointsPointer Create(Session* session, uint32_t capacity, uint32_t log_tokens, uint32_t spacing) {
  const Generation generation = {session, kVocab, nullptr, nullptr, nullptr};
  const Result<CheckpointsBytes> one = Checkpoints::Measure(generation, {uint64_t{1} << 30, log_tokens, spacing, 1});
  const CheckpointsConfig config = {capacity * one.value().checkpoint, log_tokens, spacing, 1};
  EXPECT_EQ(Checkpoints::Measure(generation, config).value().capacity, capacity);
  Result<Checkpoints*> created = Checkpoints::Create(generation, config, {{}, DefaultAllocator()});
  EXPECT_TRUE(created.ok()) << created.status().message();
  return CheckpointsPointer(created.value(), Checkpoints::Destroy);
}

class LargeText final : public TextState {
 public:
  Counts counts() const override { return {}; }
  size_t state_bytes() const override { return UINT32_MAX; }
  void Save(uint8_t*) const override {}
  void Restore(const uint8_t*) override {}
  size_t max_bytes() const override { return 1; }
  Status Replay(int32_t, How, Span<char>) override { return Ok(); }
};

TEST(Checkpoints, SizesThatOverflowAreRefused) {
  const Loaded model(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({1, 8, 1, 1});
  LargeText text;
  const Generation generation = {session.get(), kVocab, nullptr, nullptr, &text};
  for (const CheckpointsConfig& config :
       {CheckpointsConfig{UINT64_MAX, 1, 64, 1}, CheckpointsConfig{UINT64_MAX / 2, 1, UINT32_MAX, 1}}) {
    const Result<CheckpointsBytes> bytes = Checkpoints::Measure(generation, config);
    ASSERT_FALSE(bytes.ok()) << bytes.value().total << " bytes";
    EXPECT_EQ(bytes.status().code(), TARN_OUT_OF_MEMORY);
  }
}

class AnyToken final : public LogitMask {
 public:
  Status Apply(Span<float>) override { return Ok(); }
  Status Accept(int32_t) override { return Ok(); }
  bool is_complete() const override { return false; }
  uint32_t vocab_size() const override { return kVocab; }
};

// It would stay where it is when the rest goes back.
TEST(Checkpoints, TheGrammarOfTheSamplerIsExpected) {
  const Loaded model(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({1, 8, 1, 1});
  AnyToken grammar;
  SamplerConfig config{};
  config.top_p = config.repeat_penalty = 1;
  config.mask = &grammar;
  const std::unique_ptr<Sampler, void (*)(Sampler*)> sampler(Sampler::Create(kVocab, config, DefaultAllocator()).value(),
                                                             Sampler::Destroy);
  const Generation generation = {session.get(), kVocab, sampler.get(), nullptr, nullptr};
  const Status status = Checkpoints::Measure(generation, {uint64_t{1} << 30, 8, 64, 1}).status();
  EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(status.message(), "grammar is NULL, that of the sampler expected");
}

// A text in the calls that made it.
class History {
 public:
  explicit History(size_t batch) : batch_(batch) {}
  void Add(const Call& call) { calls_.push_back(call); }
  uint64_t tokens() const {
    uint64_t tokens = 0;
    for (const Call& call : calls_) tokens += call.size() / batch_;
    return tokens;
  }
  void CutAt(uint64_t position) {
    while (tokens() > position) {
      const Call last = calls_.back();
      calls_.pop_back();
      const uint64_t begin = tokens();
      if (begin >= position) continue;
      const size_t kept = static_cast<size_t>(position - begin), count = last.size() / batch_;
      Call cut;
      for (size_t sequence = 0; sequence < batch_; ++sequence) {
        const auto row = last.begin() + static_cast<ptrdiff_t>(sequence * count);
        cut.insert(cut.end(), row, row + static_cast<ptrdiff_t>(kept));
      }
      calls_.push_back(cut);
    }
  }
  // Of a session that has done nothing else; empty before the first token.
  Bits Logits(Session* session) const {
    session->Reset();
    Bits bits;
    for (const Call& call : calls_) {
      const Result<const float*> logits = session->Prefill(call.data(), call.size() / batch_);
      EXPECT_TRUE(logits.ok()) << logits.status().message();
      bits.resize(batch_ * kVocab);
      std::memcpy(bits.data(), logits.value(), bits.size() * sizeof(float));
    }
    return bits;
  }

 private:
  size_t batch_;
  std::vector<Call> calls_;
};

// A text that goes on and back at random.
class Walk {
 public:
  Walk(const Loaded& model, const Limits& limits, uint32_t log_tokens, uint32_t seed)
      : batch_(limits.batch),
        session_(model.New(limits)),
        plain_(model.New(limits)),
        checkpoints_(Create(session_.get(), /*capacity=*/5, log_tokens, /*spacing=*/7)),
        history_(limits.batch),
        random_(seed) {}

  void Go(size_t steps) {
    for (size_t i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      if (history_.tokens() > 0 && Draw(0, 3) == 0) {
        Back();
      } else {
        Forth();
      }
    }
  }
  size_t rewinds() const { return rewinds_; }

 private:
  uint64_t Draw(uint64_t least, uint64_t most) { return least + random_() % (most - least + 1); }

  void Forth() {
    const uint64_t room = kMostTokens - history_.tokens();
    if (room == 0) return;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(room, Draw(0, 1) == 0 ? 1 : Draw(1, 40)));
    Call call(batch_ * count);
    for (int32_t& token : call) token = static_cast<int32_t>(Draw(0, kVocab - 1));
    const Result<const float*> logits = session_->Prefill(call.data(), count);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    const Status status = checkpoints_->Record(call.data(), count, logits.value());
    ASSERT_TRUE(status.ok()) << status.message();
    history_.Add(call);
    Compare(logits.value());
    if (Draw(0, 9) == 0) {
      ASSERT_TRUE(checkpoints_->Mark(history_.tokens(), logits.value()).ok());
    }
  }

  void Back() {
    const uint64_t now = history_.tokens(), earliest = checkpoints_->earliest();
    const uint64_t to = Draw(earliest, now);
    const Result<const float*> logits = checkpoints_->Rewind(to);
    if (!logits.ok()) {  // only where no checkpoint is left that the log reaches
      ASSERT_EQ(earliest, now);
      ASSERT_EQ(logits.status().code(), TARN_NOT_FOUND) << logits.status().message();
      return;
    }
    ++rewinds_;
    history_.CutAt(to);
    ASSERT_EQ(session_->instance().tokens_seen(), to);
    ASSERT_EQ(checkpoints_->position(), to);
    if (to > 0) Compare(logits.value());
  }

  void Compare(const float* logits) {
    const Bits wanted = history_.Logits(plain_.get());
    ASSERT_NE(logits, nullptr);
    ASSERT_EQ(std::memcmp(logits, wanted.data(), wanted.size() * sizeof(float)), 0) << "at " << history_.tokens();
  }

  const size_t batch_;
  const SessionPointer session_, plain_;
  const CheckpointsPointer checkpoints_;
  History history_;
  std::mt19937 random_;
  size_t rewinds_ = 0;
};

class CheckpointsTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, CheckpointsTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(CheckpointsTest, RandomRewindsAreExact) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  Walk wide(model, {/*batch=*/1, /*max_chunk=*/16, 1, 1}, /*log_tokens=*/500, /*seed=*/1);
  wide.Go(80);
  EXPECT_GT(wide.rewinds(), 10u);
  Walk narrow(model, {/*batch=*/3, /*max_chunk=*/8, 1, 1}, /*log_tokens=*/30, /*seed=*/2);
  narrow.Go(40);
  EXPECT_GT(narrow.rewinds(), 3u);
}

// ---- What cannot be ----

class Tokens : public testing::Test {
 protected:
  void Feed(Checkpoints* checkpoints, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto token = static_cast<int32_t>(session->instance().tokens_seen() % kVocab);
      const float* logits = session->Prefill(&token, 1).value();
      ASSERT_TRUE(checkpoints->Record(&token, 1, logits).ok());
    }
  }
  static void ExpectError(const Status& status, tarn_status code, const std::string& words) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
  }

  const Loaded model{test::ConfigText(test::kRfa)};
  const SessionPointer session = model.New({1, 8, 1, 1});
};

TEST_F(Tokens, HowFarItGoesBackIsSaid) {
  const CheckpointsPointer checkpoints = Create(session.get(), /*capacity=*/6, /*log_tokens=*/20, /*spacing=*/8);
  Feed(checkpoints.get(), 100);
  EXPECT_EQ(checkpoints->earliest(), 80u);
  ExpectError(checkpoints->Rewind(101).status(), TARN_INVALID_ARGUMENT, "position is 101, at most 100 expected");
  ExpectError(checkpoints->Rewind(70).status(), TARN_NOT_FOUND,
              "position 70 is too far back: 80 to 100 can be rewound to, before them checkpoints alone, the first at 0");
  EXPECT_EQ(checkpoints->position(), 100u);
  EXPECT_TRUE(checkpoints->Rewind(81).ok());
  EXPECT_EQ(session->instance().tokens_seen(), 81u);
  // The oldest checkpoint is far before the log, and still a place to go back to.
  const Result<const float*> begin = checkpoints->Rewind(0);
  ASSERT_TRUE(begin.ok());
  EXPECT_EQ(begin.value(), nullptr);
  Feed(checkpoints.get(), 30);
  EXPECT_TRUE(checkpoints->Rewind(29).ok());
}

TEST_F(Tokens, TagsAreFound) {
  const CheckpointsPointer checkpoints = Create(session.get(), 6, 20, UINT32_MAX);
  Feed(checkpoints.get(), 10);
  ASSERT_TRUE(checkpoints->Mark(77, nullptr).ok());
  Feed(checkpoints.get(), 50);
  ExpectError(checkpoints->RewindToTag(78).status(), TARN_NOT_FOUND, "no checkpoint has the tag 78");
  ASSERT_TRUE(checkpoints->RewindToTag(77).ok());
  EXPECT_EQ(session->instance().tokens_seen(), 10u);
  // Without a checkpoint behind it, the log alone goes nowhere.
  Feed(checkpoints.get(), 50);
  EXPECT_EQ(checkpoints->earliest(), 61u);
  ExpectError(checkpoints->Rewind(55).status(), TARN_NOT_FOUND,
              "position 55 cannot be rewound to: only those of checkpoints can, of which there are 2");
}

TEST_F(Tokens, CallsThatWereNotRecordedAreNoticed) {
  const CheckpointsPointer checkpoints = Create(session.get(), 2, 20, 8);
  const int32_t token = 1;
  ExpectError(checkpoints->Record(&token, 1, nullptr), TARN_INVALID_ARGUMENT, "the session has seen 0 tokens, 0 and 1 expected");
  ASSERT_TRUE(session->Prefill(&token, 1).ok());
  ExpectError(checkpoints->Mark(1, nullptr), TARN_INVALID_ARGUMENT, "the session has seen 1 tokens, 0 expected");
  ExpectError(checkpoints->Record(&token, 0, nullptr), TARN_INVALID_ARGUMENT, "count is 0");
  ASSERT_TRUE(checkpoints->Restart().ok());
  EXPECT_EQ(checkpoints->position(), 1u);
  ASSERT_TRUE(checkpoints->Record(&token, 1, nullptr).code() == TARN_INVALID_ARGUMENT);
}

// A batch is at one position, or there is none to go back to. The way back is there all the same.
TEST_F(Tokens, SequencesMustHaveSeenTheSameNumber) {
  const SessionPointer two = model.New({2, 8, 1, 1});
  const CheckpointsPointer checkpoints = Create(two.get(), 2, 20, 8);
  const int32_t tokens[2] = {1, 2};
  ASSERT_TRUE(two->Prefill(tokens, 1).ok());
  ASSERT_TRUE(checkpoints->Record(tokens, 1, nullptr).ok());
  const SequenceTokens part[] = {{1, tokens, 1}};
  ASSERT_TRUE(two->PrefillSequences(part, true).ok());
  const char* const words = "sequences have seen different numbers of tokens, the same expected";
  ExpectError(checkpoints->Record(tokens, 1, nullptr), TARN_INVALID_ARGUMENT, words);
  ExpectError(checkpoints->Mark(1, nullptr), TARN_INVALID_ARGUMENT, words);
  ExpectError(checkpoints->Restart(), TARN_INVALID_ARGUMENT, words);
  ASSERT_TRUE(checkpoints->Rewind(1).ok());
  EXPECT_EQ(two->instance().tokens_seen(1), 1u);
}

TEST_F(Tokens, ACancelledReplayEndsAtItsCheckpoint) {
  const CheckpointsPointer checkpoints = Create(session.get(), 4, 50, 30);
  Feed(checkpoints.get(), 50);
  // A restored session has no request to cancel, so that only one that comes during the replay stops it: here a token that it
  // refuses stands for that. The log is what the program gave, which need not be what the session had.
  const int32_t wrong = 1000, right = 1;
  ASSERT_TRUE(session->Prefill(&right, 1).ok());
  ASSERT_TRUE(checkpoints->Record(&wrong, 1, nullptr).ok());
  EXPECT_EQ(checkpoints->Rewind(51).status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(checkpoints->position(), 30u);
  EXPECT_EQ(session->instance().tokens_seen(), 30u);
  Feed(checkpoints.get(), 3);
  EXPECT_TRUE(checkpoints->Rewind(31).ok());
}

TEST_F(Tokens, BytesAreExact) {
  const Generation generation = {session.get(), kVocab, nullptr, nullptr, nullptr};
  const uint64_t state = session->StateBytes(), one = AlignUp(state) + kVocab * sizeof(float);
  const CheckpointsConfig config = {50 * one, 100, 8, 1};
  const CheckpointsBytes bytes = Checkpoints::Measure(generation, config).value();
  EXPECT_EQ(bytes.checkpoint, one);
  EXPECT_EQ(bytes.capacity, 50u);
  EXPECT_GT(bytes.total, 50 * one + bytes.log);
  EXPECT_LT(bytes.total, 50 * one + bytes.log + 4096);
  const Result<CheckpointsBytes> less = Checkpoints::Measure(generation, {one - 1, 100, 8, 1});
  ExpectError(less.status(), TARN_INVALID_ARGUMENT,
              "ring_bytes is " + std::to_string(one - 1) + ", a checkpoint takes " + std::to_string(one));
  Block block = std::move(Block::Allocate(DefaultAllocator(), bytes.total, "test").value());
  ExpectError(Checkpoints::Create(generation, config, {block.bytes().subspan(0, bytes.total - 1), DefaultAllocator()}).status(),
              TARN_BUFFER_TOO_SMALL, std::to_string(bytes.total) + " expected");
  const Result<Checkpoints*> created = Checkpoints::Create(generation, config, {block.bytes(), DefaultAllocator()});
  ASSERT_TRUE(created.ok());
  Feed(created.value(), 600);
  EXPECT_EQ(created.value()->ring().size(), 50u);
  Checkpoints::Destroy(created.value());
}

}  // namespace
}  // namespace tarn
