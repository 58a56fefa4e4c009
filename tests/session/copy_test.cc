// Forks: a session, or a sequence of one, goes on from the state of another, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/loaded.h"

namespace tarn {
namespace {

using Bits = std::vector<uint32_t>;  // of logits
using test::CausalCase;
using test::Loaded;
using test::SessionPointer;

constexpr size_t kVocab = 256;

int32_t Token(size_t text, size_t index) { return static_cast<int32_t>((index * 37 + text * 101 + index * index * 7) % kVocab); }

// Tokens [first, first + count) of texts[i] for sequence i. Returns the logits of the last.
std::vector<Bits> Feed(Session* session, const std::vector<size_t>& texts, size_t first, size_t count) {
  std::vector<int32_t> tokens;
  for (const size_t text : texts) {
    for (size_t i = 0; i < count; ++i) tokens.push_back(Token(text, first + i));
  }
  const Result<const float*> logits = session->Prefill(tokens.data(), count);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  std::vector<Bits> bits(texts.size(), Bits(kVocab));
  for (size_t i = 0; i < texts.size(); ++i) std::memcpy(bits[i].data(), logits.value() + i * kVocab, kVocab * sizeof(float));
  return bits;
}

void ExpectRefused(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
}

class CopyTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, CopyTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(CopyTest, AForkGoesOnBitForBit) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer session = model.New({2, 16, 1, 1}), fork = model.New({2, 40, 1, 1});
  Feed(fork.get(), {3, 4}, 0, 5);  // another text, which is gone
  Feed(session.get(), {0, 1}, 0, 30);
  ASSERT_TRUE(fork->CopyFrom(*session).ok());
  EXPECT_EQ(fork->instance().tokens_seen(), 30u);
  const std::vector<Bits> wanted = Feed(session.get(), {0, 1}, 30, 7);
  EXPECT_EQ(Feed(fork.get(), {0, 1}, 30, 7), wanted);
  EXPECT_NE(Feed(session.get(), {0, 1}, 37, 3), Feed(fork.get(), {1, 0}, 37, 3));
}

// One that has seen fewer tokens than the others, and goes on from there.
TEST_P(CopyTest, ASequenceBringsItsPosition) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer batch = model.New({3, 1, 1, 1}), alone = model.New({1, 1, 1, 1});
  for (size_t i = 0; i < 17; ++i) Feed(batch.get(), {0, 1, 2}, i, 1);
  for (size_t i = 0; i < 6; ++i) Feed(alone.get(), {3}, i, 1);
  ASSERT_TRUE(batch->CopySequence(1, *alone, 0).ok());
  EXPECT_EQ(batch->instance().tokens_seen(0), 17u);
  EXPECT_EQ(batch->instance().tokens_seen(1), 6u);
  EXPECT_EQ(Feed(batch.get(), {3, 3, 3}, 6, 1)[1], Feed(alone.get(), {3}, 6, 1)[0]);
}

// From a batch to a session of one sequence, from there to another batch, and from place to place.
TEST_P(CopyTest, SequencesLeaveAndJoinABatch) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer batch = model.New({3, 1, 1, 1}), alone = model.New({1, 1, 1, 1}), twin = model.New({3, 1, 1, 1});
  for (size_t i = 0; i < 25; ++i) {
    Feed(batch.get(), {0, 1, 2}, i, 1);
    Feed(twin.get(), {5, 6, 7}, i, 1);
  }
  // Out of it and into another place of another batch: the others go on as they would have.
  ASSERT_TRUE(alone->CopySequence(0, *batch, 1).ok());
  EXPECT_EQ(alone->instance().tokens_seen(), 25u);
  ASSERT_TRUE(twin->CopySequence(2, *alone, 0).ok());
  const std::vector<Bits> wanted = Feed(batch.get(), {0, 1, 2}, 25, 1);
  EXPECT_EQ(Feed(twin.get(), {5, 6, 1}, 25, 1)[2], wanted[1]);
  // Within one.
  ASSERT_TRUE(batch->CopySequence(0, *batch, 2).ok());
  const std::vector<Bits> after = Feed(batch.get(), {2, 1, 2}, 26, 1);
  EXPECT_EQ(after[0], after[2]);
}

TEST(Copy, WhatDoesNotFitIsNamed) {
  const Loaded model(test::ConfigText(test::kSoftmax)), stranger(test::ConfigText(test::kSoftmax));
  const SessionPointer one = model.New({1, 8, 1, 1}), two = model.New({2, 8, 1, 1}), foreign = stranger.New({1, 8, 1, 1});
  Feed(one.get(), {0}, 0, 3);
  Feed(two.get(), {0, 1}, 0, 4);
  ExpectRefused(one->CopyFrom(*foreign), "the session is of another model");
  ExpectRefused(one->CopyFrom(*two), "sequences is 2, 1 expected: batch * beams of the session");
  ExpectRefused(one->CopySequence(1, *two, 0), "to is sequence 1, 0 to 0 expected");
  ExpectRefused(one->CopySequence(0, *two, 2), "from is sequence 2, 0 to 1 expected");
  EXPECT_EQ(one->instance().tokens_seen(), 3u);
  EXPECT_EQ(two->instance().tokens_seen(), 4u);
  ASSERT_TRUE(one->CopyFrom(*one).ok());
}

// ---- Sources ----

std::string Seq2Seq(const std::string& cross) {
  return R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 2, "vocab_size": 256, "hidden_size": 32, "num_heads": 4,
    "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
    "position_embedding": "sinusoidal", "encoder_attention": {"system": "softmax", "max_context": 40}, "cross_attention": )" +
         cross + R"(, "decoder_attention": {"system": "sliding_window", "window": 5}})";
}

void Encode(Session* session, const std::vector<size_t>& texts, const std::vector<size_t>& lengths) {
  std::vector<int32_t> sources;
  for (const size_t text : texts) {
    for (size_t i = 0; i < 12; ++i) sources.push_back(Token(text, i));
  }
  ASSERT_TRUE(session->Encode(sources.data(), 12, lengths.data()).ok());
}

TEST(Copy, ASequenceBringsItsSource) {
  for (const char* cross : {R"({"system": "softmax", "max_context": 40})", test::kAbc}) {
    SCOPED_TRACE(cross);
    const Loaded model(Seq2Seq(cross));
    const SessionPointer two = model.New({2, 1, 1, 1, 1, 12}), one = model.New({1, 1, 1, 1, 1, 12});
    const SessionPointer beams = model.New({4, 1, 1, 1, 2, 12}), other = model.New({2, 1, 1, 1, 1, 12});
    Encode(two.get(), {20, 21}, {12, 7});
    Feed(two.get(), {0, 1}, 0, 1);
    ASSERT_TRUE(one->CopySequence(0, *two, 1).ok());
    EXPECT_EQ(one->instance().source_tokens()[0], 7u);
    Encode(other.get(), {22, 23}, {5, 6});
    Feed(other.get(), {2, 3}, 0, 1);
    ASSERT_TRUE(other->CopySequence(0, *one, 0).ok());
    EXPECT_EQ(other->instance().source_tokens()[0], 7u);
    EXPECT_EQ(Feed(other.get(), {1, 3}, 1, 1)[0], Feed(two.get(), {0, 1}, 1, 1)[1]);
    ExpectRefused(other->CopyFrom(*model.New({2, 1, 1, 1, 2, 12})), "beams is 2, 1 expected");
    // Beams share a source: they may give a sequence, and take none.
    Encode(beams.get(), {20, 21}, {12, 7});
    Feed(beams.get(), {0, 0, 1, 1}, 0, 1);
    ASSERT_TRUE(one->CopySequence(0, *beams, 3).ok());
    EXPECT_EQ(one->instance().source_tokens()[0], 7u);
    ExpectRefused(beams->CopySequence(0, *one, 0), "beams is 2, 1 expected");
  }
}

TEST(Copy, LongestSourcesMustAgreeWhereStatesDependOnThem) {
  const Loaded model(Seq2Seq(R"({"system": "softmax", "max_context": 40})"));
  const SessionPointer shorter = model.New({1, 1, 1, 1, 1, 12}), longer = model.New({1, 1, 1, 1, 1, 20});
  Encode(shorter.get(), {20}, {12});
  ExpectRefused(longer->CopyFrom(*shorter), "max_source is 12, 20 expected");
}

}  // namespace
}  // namespace tarn
