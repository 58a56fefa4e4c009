// Sequences of a batch that come and go on their own: each gives the bits that a session of its own gives, whatever the others do,
// and those that stand still do not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/loaded.h"

namespace tarn {
namespace {

using Bytes = std::vector<uint8_t>;
using test::CausalCase;
using test::Loaded;
using test::SessionPointer;

constexpr uint32_t kVocab = 256;
constexpr uint64_t kMostTokens = 149;  // the smallest context of the models
constexpr uint32_t kBatch = 4;
constexpr uint32_t kChunk = 9;

Bytes SaveOne(const Session& session, uint32_t sequence) {
  Bytes snapshot(static_cast<size_t>(session.SequenceSnapshotBytes(sequence)));
  const Status status = session.SaveSequence(sequence, {snapshot.data(), snapshot.size()});
  EXPECT_TRUE(status.ok()) << status.message();
  return snapshot;
}

Bytes SaveAll(const Session& session) {
  Bytes snapshot(static_cast<size_t>(session.SnapshotBytes()));
  const Status status = session.Save({snapshot.data(), snapshot.size()});
  EXPECT_TRUE(status.ok()) << status.message();
  return snapshot;
}

Span<const uint8_t> SpanOf(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }

// A session with several sequences, and one of its own for each, that is given the same.
class Twins {
 public:
  Twins(const Loaded& model, uint32_t threads, uint32_t seed)
      : batch_(model.New({kBatch, kChunk, 1, threads})), other_batch_(model.New({kBatch, 31, 1, 1})), random_(seed) {
    for (uint32_t i = 0; i < kBatch; ++i) own_.push_back(model.New({1, kChunk, 1, 1}));
  }

  void Go() {
    switch (random_() % 12) {
      case 0:
        Reset(Any());
        break;
      case 1:
        Copy(Any(), Any());
        break;
      case 2:
        SaveAndRestore(Any(), Any());
        break;
      case 3:
        ChangeSessions();
        break;
      case 4:
        GoInLockstep();
        break;
      default:
        Feed();
    }
    for (uint32_t i = 0; i < kBatch; ++i) {
      ASSERT_EQ(batch_->instance().tokens_seen(i), own_[i]->instance().tokens_seen());
      ASSERT_EQ(SaveOne(*batch_, i), SaveAll(*own_[i])) << "sequence " << i;
    }
  }

  size_t differing() const { return differing_; }

 private:
  uint32_t Any() { return static_cast<uint32_t>(random_() % kBatch); }
  uint64_t Room(uint32_t sequence) const { return kMostTokens - own_[sequence]->instance().tokens_seen(); }

  std::vector<int32_t> Tokens(size_t count) {
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % kVocab);
    return tokens;
  }

  void ExpectLogitsOfOwn(uint32_t sequence, const std::vector<int32_t>& tokens, const float* logits) {
    const Result<const float*> wanted = own_[sequence]->Prefill(tokens.data(), tokens.size());
    ASSERT_TRUE(wanted.ok()) << wanted.status().message();
    if (logits == nullptr) return;
    ASSERT_EQ(std::memcmp(logits, wanted.value(), kVocab * sizeof(float)), 0)
        << "sequence " << sequence << ", " << tokens.size() << " tokens up to " << own_[sequence]->instance().tokens_seen();
  }

  // Some sequences: a step, or a prompt of one chunk or several.
  void Feed() {
    std::vector<std::vector<int32_t>> tokens;
    std::vector<SequenceTokens> parts;
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint64_t most = random_() % 3 == 0 ? 3 * kChunk + 2 : 1;
      const auto count = static_cast<size_t>(std::min<uint64_t>(Room(i), 1 + random_() % most));
      if (count == 0 || random_() % 3 == 0) continue;
      tokens.push_back(Tokens(count));
      parts.push_back({i, nullptr, count});
    }
    if (parts.empty()) return;
    for (size_t i = 0; i < parts.size(); ++i) parts[i].tokens = tokens[i].data();
    for (const SequenceTokens& part : parts) differing_ += part.count != parts[0].count;
    const bool wants_logits = random_() % 5 > 0;
    const Result<const float*> logits = batch_->PrefillSequences({parts.data(), parts.size()}, wants_logits);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    ASSERT_EQ(logits.value() != nullptr, wants_logits);
    for (size_t i = 0; i < parts.size(); ++i) {
      ExpectLogitsOfOwn(parts[i].sequence, tokens[i], wants_logits ? logits.value() + i * kVocab : nullptr);
    }
  }

  // Calls of all sequences take them from wherever they are.
  void GoInLockstep() {
    uint64_t room = 12;
    for (uint32_t i = 0; i < kBatch; ++i) room = std::min(room, Room(i));
    if (room == 0) return;
    const size_t count = 1 + random_() % room;
    const std::vector<int32_t> tokens = Tokens(count * kBatch);
    const Result<const float*> logits = batch_->Prefill(tokens.data(), count);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    for (uint32_t i = 0; i < kBatch; ++i) {
      const auto begin = tokens.begin() + static_cast<ptrdiff_t>(i * count);
      ExpectLogitsOfOwn(i, {begin, begin + static_cast<ptrdiff_t>(count)}, logits.value() + i * kVocab);
    }
  }

  void Reset(uint32_t sequence) {
    ASSERT_TRUE(batch_->ResetSequence(sequence).ok());
    own_[sequence]->Reset();
  }

  void Copy(uint32_t to, uint32_t from) {
    ASSERT_TRUE(batch_->CopySequence(to, *batch_, from).ok());
    const Status copied = own_[to]->CopyFrom(*own_[from]);
    ASSERT_TRUE(copied.ok()) << copied.message();
  }

  // From a place of the batch to a session of its own, and from one of those to a place of the batch.
  void SaveAndRestore(uint32_t to, uint32_t from) {
    const Bytes of_batch = SaveOne(*batch_, from), of_own = SaveAll(*own_[from]);
    ASSERT_TRUE(own_[to]->Restore(SpanOf(of_batch)).ok());
    ASSERT_TRUE(batch_->RestoreSequence(to, SpanOf(of_own)).ok());
  }

  // By a snapshot of all, and back.
  void ChangeSessions() {
    const Bytes all = SaveAll(*batch_);
    const Status restored = other_batch_->Restore(SpanOf(all));
    ASSERT_TRUE(restored.ok()) << restored.message();
    ASSERT_EQ(SaveAll(*other_batch_), all);
    for (uint32_t i = 0; i < kBatch; ++i) ASSERT_EQ(SaveOne(*other_batch_, i), SaveOne(*batch_, i));
    batch_->Reset();
    ASSERT_TRUE(batch_->CopyFrom(*other_batch_).ok());
    EXPECT_EQ(all[8], batch_->instance().in_lockstep() ? 1 : 2);  // the version
    EXPECT_LE(all.size(), batch_->instance().bytes().state * 513 / 512 + 64);
  }

  const SessionPointer batch_, other_batch_;
  std::vector<SessionPointer> own_;
  std::mt19937 random_;
  size_t differing_ = 0;
};

void ExpectBitsOfOwnSessions(const Loaded& model, uint32_t threads, int rounds) {
  Twins twins(model, threads, /*seed=*/threads);
  for (int i = 0; i < rounds; ++i) {
    twins.Go();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(twins.differing(), static_cast<size_t>(rounds) / 4);
}

class SequencesTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, SequencesTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(SequencesTest, HaveTheBitsOfSessionsOfTheirOwn) {
  const Loaded sinusoidal(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  ExpectBitsOfOwnSessions(sinusoidal, 1, 120);
  std::string learned = test::ConfigText(GetParam().attention, "learned", GetParam().heads);
  learned.insert(1, R"("max_positions": 149, )");
  ExpectBitsOfOwnSessions(Loaded(learned, GetParam().state, convert::Precision::kInt8, /*portable=*/false), 2, 60);
  if (GetParam().attention.find("compressive_transformer") != std::string::npos) return;  // its means want keys without positions
  if (std::string(GetParam().heads).find("token_shift") != std::string::npos) return;     // has no rope
  const Loaded rope(test::ConfigText(GetParam().attention, "rope", GetParam().heads), GetParam().state, convert::Precision::kInt4,
                    /*portable=*/false);
  ExpectBitsOfOwnSessions(rope, 1, 60);
}

// Widths at which dense layers use all of their tiles, and tails.
TEST(Sequences, HaveTheBitsOfSessionsOfTheirOwnInWideLayers) {
  constexpr char kWide[] = R"({"task": "causal_lm", "vocab_size": 256, "hidden_size": 416, "num_layers": 1, "num_heads": 8,
    "intermediate_size": 1056, "hidden_act": "gelu", "norm": "layernorm", "norm_eps": 1e-5, "attention_bias": true,
    "tokenizer": "bytes", "position_embedding": "learned", "max_positions": 149, "attention": )";
  for (const convert::Precision precision : {convert::Precision::kF32, convert::Precision::kF16, convert::Precision::kInt8,
                                             convert::Precision::kInt4, convert::Precision::kInt3, convert::Precision::kInt2}) {
    for (const bool portable : {false, true}) {
      if (!test::RowsHaveBitsOfOne(precision, portable)) continue;
      SCOPED_TRACE((portable ? "portable, precision " : "precision ") + std::to_string(static_cast<int>(precision)));
      const Loaded model(std::string(kWide) + test::kRfa + "}", format::DType::F32, precision, portable);
      ExpectBitsOfOwnSessions(model, 2, 40);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---- Sources ----

constexpr char kTranslator[] = R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 2, "vocab_size": 256,
    "hidden_size": 32, "num_heads": 4, "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5,
    "tokenizer": "bytes", "position_embedding": "sinusoidal", "encoder_attention": {"system": "softmax", "max_context": 40},
    "decoder_attention": {"system": "sliding_window", "window": 5}, "cross_attention": )";

const std::vector<int32_t> kSources = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};  // 3 of 6 tokens at most
constexpr size_t kLengths[] = {6, 2, 4};

// Each reads its own source, also where others stand still between them; a reset leaves it encoded.
TEST(Sequences, ReadTheirOwnSources) {
  for (const char* cross : {R"({"system": "softmax", "max_context": 40})", test::kAbc,
                            R"({"system": "rfa", "feature_map": "gaussian", "num_features": 8})"}) {
    SCOPED_TRACE(cross);
    const Loaded model(std::string(kTranslator) + cross + "}");
    const SessionPointer batch = model.New({3, 4, 1, 2, 1, 6});
    ASSERT_TRUE(batch->Encode(kSources.data(), 6, kLengths).ok());
    std::vector<SessionPointer> own;
    for (size_t i = 0; i < 3; ++i) {
      own.push_back(model.New({1, 4, 1, 1, 1, 6}));
      ASSERT_TRUE(own[i]->Encode(kSources.data() + 6 * i, 6, &kLengths[i]).ok());
    }
    const int32_t tokens[] = {7, 8, 9, 10, 11, 12, 13};
    const std::vector<std::vector<SequenceTokens>> calls = {
        {{0, tokens, 3}, {2, tokens + 1, 1}},
        {{1, tokens, 7}, {2, tokens, 5}},
        {{0, tokens, 1}, {1, tokens + 1, 1}, {2, tokens + 2, 1}},
        {{2, tokens, 2}},
    };
    for (int round = 0; round < 2; ++round) {
      for (const std::vector<SequenceTokens>& parts : calls) {
        const Result<const float*> logits = batch->PrefillSequences({parts.data(), parts.size()}, true);
        ASSERT_TRUE(logits.ok()) << logits.status().message();
        for (size_t i = 0; i < parts.size(); ++i) {
          const Result<const float*> wanted = own[parts[i].sequence]->Prefill(parts[i].tokens, parts[i].count);
          ASSERT_TRUE(wanted.ok()) << wanted.status().message();
          EXPECT_EQ(std::memcmp(logits.value() + i * kVocab, wanted.value(), kVocab * sizeof(float)), 0) << parts[i].sequence;
        }
      }
      ASSERT_TRUE(batch->ResetSequence(2).ok());
      EXPECT_EQ(batch->instance().source_tokens()[2], 4u);
      ASSERT_TRUE(own[2]->Encode(kSources.data() + 12, 6, &kLengths[2]).ok());
    }
    // A snapshot brings its source along.
    const Bytes third = SaveOne(*batch, 2);
    EXPECT_EQ(third, SaveAll(*own[2]));
    ASSERT_TRUE(batch->RestoreSequence(1, SpanOf(third)).ok());
    EXPECT_EQ(batch->instance().source_tokens()[1], 4u);
    EXPECT_EQ(SaveOne(*batch, 1), third);
  }
}

TEST(Sequences, RunBesideSourcesThatAreNotEncoded) {
  const Loaded model(std::string(kTranslator) + test::kAbc + "}");
  const SessionPointer batch = model.New({3, 4, 1, 1, 1, 6}), one = model.New({1, 4, 1, 1, 1, 6});
  ASSERT_TRUE(one->Encode(kSources.data(), 6, &kLengths[0]).ok());
  ASSERT_TRUE(batch->CopySequence(1, *one, 0).ok());
  const int32_t token = 7;
  const SequenceTokens part[] = {{1, &token, 1}}, other[] = {{1, &token, 1}, {2, &token, 1}};
  const Result<const float*> found = batch->PrefillSequences(part, true);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const Result<const float*> expected = one->Prefill(&token, 1);
  ASSERT_TRUE(expected.ok());
  constexpr size_t kLogits = 256;
  EXPECT_TRUE(std::equal(expected.value(), expected.value() + kLogits, found.value()));
  EXPECT_STREQ(batch->PrefillSequences(other, true).status().message(),
               "sequence 2: source 2 is not encoded: encode, restore or copy it first");
}

// ---- What cannot be ----

void ExpectRefused(const Status& status, const std::string& words, tarn_status code = TARN_INVALID_ARGUMENT) {
  EXPECT_EQ(status.code(), code);
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
}

TEST(Sequences, WhatCannotBeIsNamedAndChangesNothing) {
  const Loaded model(test::ConfigText(test::kSoftmax));  // holds 150 tokens
  const SessionPointer session = model.New({3, 8, 1, 1});
  const std::vector<int32_t> tokens(151, 5);
  const int32_t wrong[] = {1, 256};
  const auto refused = [&](const std::vector<SequenceTokens>& parts, const char* words, tarn_status code = TARN_INVALID_ARGUMENT) {
    const Bytes before = SaveAll(*session);
    ExpectRefused(session->PrefillSequences({parts.data(), parts.size()}, true).status(), words, code);
    EXPECT_EQ(SaveAll(*session), before);
  };
  const SequenceTokens first[] = {{1, tokens.data(), 20}};
  ASSERT_TRUE(session->PrefillSequences(first, true).ok());
  refused({}, "part_count is 0");
  refused({{3, tokens.data(), 1}}, "part 0: sequence is 3, 0 to 2 expected");
  refused({{1, tokens.data(), 1}, {0, tokens.data(), 1}}, "part 1 is of sequence 0, one above 1 expected");
  refused({{1, tokens.data(), 1}, {1, tokens.data(), 1}}, "part 1 is of sequence 1, one above 1 expected");
  refused({{0, tokens.data(), 1}, {2, nullptr, 1}}, "sequence 2: tokens is NULL");
  refused({{0, tokens.data(), 0}}, "sequence 0: count is 0");
  refused({{0, tokens.data(), 1}, {2, wrong, 2}}, "sequence 2: token 1 is 256, 0 to 255 expected");
  // The bound is each one's own.
  refused({{0, tokens.data(), 150}, {1, tokens.data(), 131}}, "150 tokens from a reset on: 20 are used, 131 more expected",
          TARN_CONTEXT_FULL);
  const SequenceTokens full[] = {{0, tokens.data(), 150}, {1, tokens.data(), 130}};
  ASSERT_TRUE(session->PrefillSequences(full, true).ok());
  refused({{0, tokens.data(), 1}}, "150 are used", TARN_CONTEXT_FULL);
  EXPECT_EQ(session->Prefill(tokens.data(), 1).status().code(), TARN_CONTEXT_FULL);
  ASSERT_TRUE(session->ResetSequence(0).ok());
  const SequenceTokens again[] = {{0, tokens.data(), 150}};
  ASSERT_TRUE(session->PrefillSequences(again, true).ok());
  EXPECT_EQ(session->instance().tokens_seen(1), 150u);
  ExpectRefused(session->ResetSequence(3), "sequence is 3, 0 to 2 expected");
  EXPECT_EQ(session->SequenceSnapshotBytes(3), 0u);
  // A snapshot of several is not one of one.
  const Bytes all = SaveAll(*session);
  ExpectRefused(session->RestoreSequence(0, SpanOf(all)), "snapshot: sequences is 3, 1 expected");
}

TEST(Sequences, OfOneSourceGoTogether) {
  const Loaded model(std::string(kTranslator) + test::kAbc + "}");
  const SessionPointer session = model.New({4, 4, 1, 1, 2, 6});
  ASSERT_TRUE(session->Encode(kSources.data(), 6, kLengths).ok());
  const int32_t token = 7;
  const SequenceTokens part[] = {{0, &token, 1}};
  ExpectRefused(session->PrefillSequences(part, true).status(), "beams is 2, 1 expected");
  const Bytes one = SaveOne(*session, 3);
  ExpectRefused(session->RestoreSequence(3, SpanOf(one)), "beams is 2, 1 expected");
  const SessionPointer alone = model.New({1, 4, 1, 1, 1, 6});
  ASSERT_TRUE(alone->Restore(SpanOf(one)).ok());
  EXPECT_EQ(alone->instance().source_tokens()[0], 2u);
}

// A cancelled call keeps whole chunks of each sequence: it goes on as if it had been given those alone.
TEST(Sequences, ACancelledCallKeepsWholeChunks) {
  const Loaded model(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({2, 8, 1, 1}), whole = model.New({2, 8, 1, 1});
  const std::vector<int32_t> tokens(40, 9);
  const SequenceTokens parts[] = {{0, tokens.data(), 40}, {1, tokens.data(), 3}};
  session->Cancel();
  ExpectRefused(session->PrefillSequences(parts, true).status(), "0 of 5 chunks read: cancelled", TARN_CANCELLED);
  EXPECT_EQ(session->instance().tokens_seen(), 0u);
  ASSERT_TRUE(session->PrefillSequences(parts, true).ok());
  ASSERT_TRUE(whole->PrefillSequences(parts, true).ok());
  EXPECT_EQ(SaveAll(*session), SaveAll(*whole));
}

}  // namespace
}  // namespace tarn
