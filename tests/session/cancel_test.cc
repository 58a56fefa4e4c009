// Calls that are stopped: what they return, and what holds afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/generation/checkpoints.h"
#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

using Logits = std::vector<float>;

constexpr uint32_t kChunk = 64;
constexpr size_t kTokens = 40 * kChunk + 3;
// So many slots and rounds that the few tokens of these tests take minutes.
constexpr char kManyRounds[] = R"({"task": "masked_lm", "num_layers": 1, "vocab_size": 256, "hidden_size": 32, "num_heads": 4,
    "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
    "position_embedding": "sinusoidal", "attention": {"system": "kv_clustering", "num_slots": 65536, "iterations": 1000}})";

class Cancelling : public ::testing::Test {
 protected:
  void Load(const std::string& config, const Limits& limits) {
    file_ = test::MakeModel(config);
    Result<LoadedModel> model =
        LoadedModel::Open(FileMap(), {file_.data(), file_.size()},
                          {Verify::kOnce, nullptr, true, DefaultAllocator(), /*max_work_per_token=*/UINT64_MAX});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model.value());
    ASSERT_TRUE(model_.Pack().ok());
    Result<Session*> session = Session::Create(model_, limits, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_.reset(session.value());
    for (size_t i = 0; i < kTokens; ++i) tokens_.push_back(static_cast<int32_t>(i * 37 % 256));
  }

  Logits Prefill(size_t from, size_t count) {
    const Result<const float*> logits = session_->Prefill(tokens_.data() + from, count);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return logits.ok() ? Logits(logits.value(), logits.value() + 256) : Logits();
  }
  uint64_t seen() const { return session_->instance().tokens_seen(); }

  std::vector<uint8_t> file_;
  LoadedModel model_;
  std::unique_ptr<Session, void (*)(Session*)> session_{nullptr, Session::Destroy};
  std::vector<int32_t> tokens_;
};

TEST_F(Cancelling, BetweenCallsStopsTheNextOneBeforeItChangesAnything) {
  Load(test::ConfigText(test::kRfa), {1, kChunk, 1, 1});
  const Logits expected = Prefill(0, kTokens);
  session_->Reset();
  Prefill(0, 2 * kChunk);
  session_->Cancel();
  const Result<const float*> stopped = session_->Prefill(tokens_.data() + 2 * kChunk, kTokens - 2 * kChunk);
  EXPECT_EQ(stopped.status().code(), TARN_CANCELLED);
  EXPECT_STREQ(stopped.status().message(), "0 of 2435 tokens read: cancelled");
  EXPECT_EQ(seen(), 2 * kChunk);
  EXPECT_EQ(Prefill(2 * kChunk, kTokens - 2 * kChunk), expected);
}

TEST_F(Cancelling, AResetWithdrawsIt) {
  Load(test::ConfigText(test::kRfa), {1, kChunk, 1, 1});
  session_->Cancel();
  session_->Reset();
  Prefill(0, 1);
}

TEST_F(Cancelling, WhatSetsTheOnlySequenceAnewWithdrawsIt) {
  Load(test::ConfigText(test::kRfa), {1, kChunk, 1, 1});
  Prefill(0, 1);
  std::vector<uint8_t> one(static_cast<size_t>(session_->SequenceSnapshotBytes(0))), all(session_->SnapshotBytes());
  ASSERT_TRUE(session_->SaveSequence(0, {one.data(), one.size()}).ok());
  ASSERT_TRUE(session_->Save({all.data(), all.size()}).ok());
  const std::function<Status()> ways[] = {[&] {
                                            return session_->RestoreSequence(0, {one.data(), one.size()});
                                          },
                                          [&] { return session_->CopySequence(0, *session_, 0); },
                                          [&] {
                                            return session_->Restore({all.data(), all.size()});
                                          },
                                          [&] { return session_->ResetSequence(0); }};
  for (size_t way = 0; way < std::size(ways); ++way) {
    session_->Cancel();
    ASSERT_TRUE(ways[way]().ok()) << way;
    EXPECT_TRUE(session_->Prefill(tokens_.data(), 1).ok()) << way;
  }
}

TEST_F(Cancelling, KeepsWholeChunks) {
  Load(test::ConfigText(test::kRfa), {1, kChunk, 1, 1});
  const Logits expected = Prefill(0, kTokens);
  for (int delay_us = 0; delay_us < 4000; delay_us += 200) {
    session_->Reset();
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
      session_->Cancel();
    });
    const Status status = session_->Prefill(tokens_.data(), kTokens).status();
    other.join();
    if (status.ok()) {  // it came too late
      EXPECT_EQ(seen(), kTokens);
      continue;
    }
    ASSERT_EQ(status.code(), TARN_CANCELLED) << status.message();
    const size_t read = static_cast<size_t>(seen());
    EXPECT_EQ(read % kChunk, 0u);
    EXPECT_LT(read, kTokens);
    EXPECT_EQ(Prefill(read, kTokens - read), expected) << "after " << read << " tokens";
  }
}

// What a progress function is told, and where it stops.
struct Told {
  std::vector<size_t> done;
  size_t stop_at = SIZE_MAX;
  Session* session = nullptr;  // whose call is cancelled there
  static int GoOn(void* context, size_t done, size_t total) {
    Told* told = static_cast<Told*>(context);
    EXPECT_EQ(total, kTokens);
    told->done.push_back(done);
    if (done != told->stop_at) return 1;
    if (told->session == nullptr) return 0;
    told->session->Cancel();
    return 1;
  }
};

TEST_F(Cancelling, AProgressFunctionSeesEveryChunkAndStopsBehindOne) {
  Load(test::ConfigText(test::kRfa), {1, kChunk, 1, 1});
  const Logits expected = Prefill(0, kTokens);
  Told all;
  session_->Reset();
  const Result<const float*> logits = session_->Prefill(tokens_.data(), kTokens, {Told::GoOn, &all});
  ASSERT_TRUE(logits.ok()) << logits.status().message();
  EXPECT_EQ(Logits(logits.value(), logits.value() + 256), expected);
  ASSERT_EQ(all.done.size(), 41u);
  for (size_t i = 0; i < all.done.size(); ++i) EXPECT_EQ(all.done[i], std::min((i + 1) * kChunk, kTokens));
  for (const size_t stop : {size_t{kChunk}, size_t{7 * kChunk}, size_t{40 * kChunk}}) {
    for (const bool by_cancel : {false, true}) {
      session_->Reset();
      Told told{{}, stop, by_cancel ? session_.get() : nullptr};
      const Status status = session_->Prefill(tokens_.data(), kTokens, {Told::GoOn, &told}).status();
      EXPECT_EQ(status.code(), TARN_CANCELLED);
      EXPECT_EQ(std::string(status.message()), std::to_string(stop) + " of 2563 tokens read: " +
                                                   (by_cancel ? "cancelled" : "the caller's progress function stopped it"));
      EXPECT_EQ(told.done.back(), stop);
      EXPECT_EQ(seen(), stop);
      EXPECT_EQ(Prefill(stop, kTokens - stop), expected) << stop;
    }
  }
}

TEST_F(Cancelling, TheAnswerAfterTheLastChunkDoesNotCount) {
  Load(test::ConfigText(test::kRfa), {1, kChunk, 1, 1});
  Told told{{}, kTokens, nullptr};
  EXPECT_TRUE(session_->Prefill(tokens_.data(), kTokens, {Told::GoOn, &told}).ok());
  EXPECT_EQ(seen(), kTokens);
}

TEST_F(Cancelling, ALongChunkMayBeBrokenOffAndIsThenRefused) {
  // Windows of so many rows count as long runs, though few rows are there yet.
  Load(test::ConfigText(R"({"system": "sliding_window", "window": 262144})", "none"), {1, kChunk, 1, 1});
  const Logits expected = Prefill(0, kChunk);
  std::vector<uint8_t> snapshot(static_cast<size_t>(session_->SnapshotBytes()));
  ASSERT_TRUE(session_->Save({snapshot.data(), snapshot.size()}).ok());
  session_->Reset();
  const Generation generation = {session_.get(), 256, nullptr, nullptr, nullptr};
  const CheckpointsConfig one = {uint64_t{1} << 31, 16, 16, 1};
  const Result<Checkpoints*> created = Checkpoints::Create(
      generation, {Checkpoints::Measure(generation, one).value().checkpoint, 16, 16, 1}, {{}, DefaultAllocator()});
  ASSERT_TRUE(created.ok()) << created.status().message();
  const std::unique_ptr<Checkpoints, void (*)(Checkpoints*)> checkpoints(created.value(), Checkpoints::Destroy);

  Instance& instance = const_cast<Instance&>(session_->instance());
  const ThreadPool alone;
  const auto put_ids = [&] { std::memset(instance.input(Stage::kDecode, 0), 0, kChunk * sizeof(int32_t)); };
  instance.cancellation().Request();
  put_ids();
  ASSERT_TRUE(instance.Decode(1, 1, alone).ok()) << "a short run is finished";
  put_ids();
  ASSERT_EQ(instance.Decode(kChunk, 1, alone).code(), TARN_CANCELLED);
  instance.cancellation().Withdraw();

  const char* const words = "the last call was broken off in the middle of a chunk: reset, restore or encode first";
  EXPECT_STREQ(session_->Prefill(tokens_.data(), 1).status().message(), words);
  EXPECT_STREQ(session_->Score(tokens_.data(), 1).status().message(), words);
  EXPECT_STREQ(session_->Save({snapshot.data(), snapshot.size()}).message(), words);
  const uint32_t parent = 0;
  EXPECT_EQ(session_->Reorder(&parent).code(), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(checkpoints->Mark(1, nullptr).message(), words);
  EXPECT_STREQ(checkpoints->Restart().message(), words);
  ASSERT_TRUE(checkpoints->Rewind(0).ok()) << "the checkpoint is still there, and is a way back";
  EXPECT_EQ(Prefill(0, kChunk), expected);
  ASSERT_TRUE(session_->Restore({snapshot.data(), snapshot.size()}).ok());
  EXPECT_EQ(seen(), kChunk);
  Prefill(0, 1);
  session_->Reset();
  EXPECT_EQ(Prefill(0, kChunk), expected);
}

TEST_F(Cancelling, OfABrokenChunkOnlyItsSequencesAreLost) {
  Load(test::ConfigText(R"({"system": "sliding_window", "window": 262144})", "none"), {3, kChunk, 1, 1});
  const SequenceTokens parts[] = {{0, tokens_.data(), 5}, {1, tokens_.data(), 7}, {2, tokens_.data(), 2}};
  ASSERT_TRUE(session_->PrefillSequences(parts, true).ok());
  const auto save = [&](uint32_t sequence) {
    std::vector<uint8_t> snapshot(static_cast<size_t>(session_->SequenceSnapshotBytes(sequence)));
    EXPECT_TRUE(session_->SaveSequence(sequence, {snapshot.data(), snapshot.size()}).ok());
    return snapshot;
  };
  const std::vector<uint8_t> before[] = {save(0), save(1), save(2)};

  Instance& instance = const_cast<Instance&>(session_->instance());
  instance.cancellation().Request();
  std::memset(instance.input(Stage::kDecode, 0), 0, (kChunk + 1) * sizeof(int32_t));
  instance.sequences()[0] = {0, 0, kChunk};
  instance.sequences()[1] = {0, 2, 1};
  ASSERT_EQ(instance.DecodeParts(2, 1, ThreadPool()).code(), TARN_CANCELLED);
  instance.cancellation().Withdraw();

  const SequenceTokens broken[] = {{1, tokens_.data(), 1}, {2, tokens_.data(), 1}}, whole[] = {{1, tokens_.data(), 1}};
  EXPECT_STREQ(session_->PrefillSequences(broken, true).status().message(),
               "sequence 2: broken off in the middle of a chunk: reset or restore it first");
  EXPECT_EQ(session_->Prefill(tokens_.data(), 1).status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(session_->SaveSequence(0, {}).code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(session_->CopySequence(1, *session_, 0).code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(save(1), before[1]);
  ASSERT_TRUE(session_->PrefillSequences(whole, true).ok());
  ASSERT_TRUE(session_->RestoreSequence(0, {before[0].data(), before[0].size()}).ok());
  EXPECT_EQ(save(0), before[0]);
  ASSERT_TRUE(session_->CopySequence(2, *session_, 0).ok());
  EXPECT_EQ(save(2), before[0]);
  ASSERT_TRUE(session_->Prefill(tokens_.data(), 1).ok());
}

TEST_F(Cancelling, IsHeardInsideALongOp) {
  for (const uint32_t threads : {1u, 2u}) {
    Load(kManyRounds, {1, 1, 1, threads, 1, /*max_source=*/40});
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it runs by then; if not, the same holds
      session_->Cancel();
    });
    const uint32_t position = 0;
    const Result<const float*> logits = session_->Fill(tokens_.data(), 40, {&position, 1});
    other.join();
    EXPECT_EQ(logits.status().code(), TARN_CANCELLED) << logits.status().message();
  }
}

class CancellingSources : public Cancelling {
 protected:
  void SetUp() override {
    Load(R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 256, "hidden_size": 32, "num_heads": 4,
             "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
             "position_embedding": "sinusoidal", "encoder_attention": {"system": "softmax", "max_context": 512},
             "cross_attention": {"system": "abc_mlp", "num_slots": 4},
             "decoder_attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 8, "gate": "forget"}})",
         {kSources, kChunk, 1, 1, /*beams=*/1, /*max_source=*/kLength});
  }
  Status Encode() { return session_->Encode(tokens_.data(), kLength, lengths_.data()); }
  Status Step() { return session_->Prefill(std::vector<int32_t>(kSources, 'a').data(), 1).status(); }

  static constexpr uint32_t kSources = 8, kLength = 256;
  const std::vector<size_t> lengths_ = std::vector<size_t>(kSources, kLength);
};

TEST_F(CancellingSources, BetweenCallsAnEncodeChangesNothing) {
  ASSERT_TRUE(Encode().ok());
  ASSERT_TRUE(Step().ok());
  session_->Cancel();
  EXPECT_EQ(Encode().code(), TARN_CANCELLED);
  EXPECT_EQ(seen(), 1u);
  EXPECT_TRUE(Step().ok());
}

TEST_F(CancellingSources, DuringAnEncodeNoSourceOfBeforeIsLeft) {
  for (int delay_us = 0, cancelled = 0; cancelled < 20; delay_us = (delay_us + 300) % 12'000) {
    ASSERT_TRUE(Encode().ok());
    ASSERT_TRUE(Step().ok());
    std::atomic<bool> begun{false};
    std::thread other([&] {
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
      session_->Cancel();
    });
    begun = true;
    const Status status = Encode();
    other.join();
    const_cast<Instance&>(session_->instance()).cancellation().Withdraw();
    if (status.ok()) continue;  // it came too late
    ASSERT_EQ(status.code(), TARN_CANCELLED) << status.message();
    if (seen() == 1) continue;  // it came too early, and changed nothing
    ++cancelled;
    EXPECT_STREQ(Step().message(), "there is nothing to decode from: encode the sources first");
    for (const uint32_t tokens : session_->instance().source_tokens()) EXPECT_EQ(tokens, 0u);
  }
}

// ---- What a file may ask for ----

Status Open(const std::vector<uint8_t>& file, uint64_t max_work, uint64_t max_packed, bool portable = true) {
  return LoadedModel::Open(FileMap(), {file.data(), file.size()},
                           {Verify::kOnce, nullptr, portable, DefaultAllocator(), max_work, max_packed})
      .status();
}

TEST(Bounds, WorkIsRefusedAboveTheBoundAndAllowedWithTheOption) {
  const std::vector<uint8_t> file = test::MakeModel(kManyRounds);
  const Status status = Open(file, 0, 0);
  EXPECT_EQ(status.code(), TARN_UNSUPPORTED);
  const std::string message = status.message();
  for (const char* words :
       {"a token takes about 42", "of them op 'layers.0.attn", "at most 2", "max_work_per_token", "--max-work"}) {
    EXPECT_NE(message.find(words), std::string::npos) << message << ", expected: " << words;
  }
  EXPECT_TRUE(Open(file, UINT64_MAX, 0).ok());
}

TEST(Bounds, WorkIsWhatTheGraphSays) {
  // One token: a product per weight of the dense layers and of the head, and attention over a full window.
  const auto least = [](const char* attention) {
    const std::vector<uint8_t> file = test::MakeModel(test::ConfigText(attention, "none"));
    uint64_t low = 0, high = uint64_t{1} << 40;
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (Open(file, middle, 0).ok() ? high : low) = middle;
    }
    return high;
  };
  const uint64_t narrow = least(R"({"system": "sliding_window", "window": 16})");
  const uint64_t wide = least(R"({"system": "sliding_window", "window": 1016})");
  EXPECT_EQ(wide - narrow, 2u * 4 * 1000 * (8 + 12));  // layers, heads, rows, elements of a key and a value
  EXPECT_GT(narrow, 32u * 256 + 2 * 3 * 32 * 48);
  EXPECT_LT(narrow, 2 * (32u * 256 + 2 * (3 * 32 * 48 + 32 * (32 + 16 + 24) + 48 * 32) + 2 * 4 * 16 * 20));
}

#if defined(TARN_HAVE_XNNPACK)
TEST(Bounds, PackedWeightsAreRefusedAboveTheBound) {
  const std::vector<uint8_t> file = test::MakeModel(test::ConfigText(test::kRfa));
  EXPECT_TRUE(Open(file, 0, 0, /*portable=*/false).ok());
  const Status status = Open(file, 0, 1000, /*portable=*/false);
  EXPECT_EQ(status.code(), TARN_UNSUPPORTED);
  const std::string message = status.message();
  for (const char* words : {"packed weights take ", "at most 1000 expected", "max_packed_bytes"}) {
    EXPECT_NE(message.find(words), std::string::npos) << message << ", expected: " << words;
  }
}
#endif

}  // namespace
}  // namespace tarn
