// A long text on the default model, through the C API. One session reads it; another leaves the text again and again, by random
// operations, and must return to the same bits. TARN_SOAK_TOKENS: the length of the text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tarn/checkpoints.h"
#include "tarn/tarn.h"

namespace tarn {
namespace {

constexpr size_t kVocab = 256;
constexpr uint32_t kPlaces = 3;      // of the batch
constexpr size_t kMostTokens = 128;  // twice max_chunk

void Check(tarn_status status, const tarn_error& error) { ASSERT_EQ(status, TARN_OK) << error.message; }

// Anonymous memory of the process.
size_t AnonymousBytes() {
  size_t total = 0, resident = 0, shared = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file != nullptr) {
    EXPECT_EQ(std::fscanf(file, "%zu %zu %zu", &total, &resident, &shared), 3);
    std::fclose(file);
  }
  return (resident - shared) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A part of a text, which is read as one chunk or token by token: these round differently.
struct Piece {
  std::vector<int32_t> tokens;
  bool as_chunk = false;
};

class Soak {
 public:
  Soak() {
    tarn_source source = TARN_SOURCE_INIT;
    source.path = "examples/models/shakespeare-rfa-gate-int8.tarn";
    tarn_model_config model_config = TARN_MODEL_CONFIG_INIT;
#if defined(__aarch64__)
    model_config.portable_dense = 1;  // XNNPACK's rows of a batch are not bit for bit those of a single sequence there
#endif
    Check(tarn_model_open(&source, &model_config, &model_, &error_), error_);
    tarn_session_config config = TARN_SESSION_CONFIG_INIT;
    config.threads = 1;
    for (tarn_session** session : {&plain_, &moved_, &fork_}) {
      Check(tarn_session_create(model_, &config, session, &error_), error_);
    }
    config.batch = kPlaces;
    Check(tarn_session_create(model_, &config, &batch_, &error_), error_);
    tarn_memory memory = TARN_MEMORY_INIT;
    Check(tarn_model_requirements(model_, nullptr, &memory, &error_), error_);
    const size_t most = static_cast<size_t>(memory.state_bytes * 513 / 512 + 96);
    for (std::vector<uint8_t>* bytes : {&plain_state_, &moved_state_, &base_, &delta_}) bytes->resize(most);
    tarn_generation generation = TARN_GENERATION_INIT;
    generation.session = moved_;
    tarn_checkpoints_config ring = TARN_CHECKPOINTS_CONFIG_INIT;
    ring.ring_bytes = 8 * memory.state_bytes;
    Check(tarn_checkpoints_create(&generation, &ring, &checkpoints_, &error_), error_);
    SaveBase();
  }
  ~Soak() {
    tarn_checkpoints_destroy(checkpoints_);
    for (tarn_session* session : {plain_, moved_, fork_, batch_}) tarn_session_destroy(session);
    tarn_model_close(model_);
  }

  // Reads the next piece of the text, on both ways. Returns its tokens.
  size_t Advance() {
    const Piece piece = Random();
    CopyLogits(Feed(plain_, piece), &plain_logits_);
    const auto operation = random_() % 20;
    if (operation == 0) {
      JoinAndLeave(piece);
    } else {
      if (operation == 1) GoBackToAMark();
      if (operation == 2) GoBackAPiece();
      if (operation == 3) Fork();
      if (operation == 4) SaveAndRestore();
      if (operation == 5) SaveAndRestoreDelta();
      Record(piece);
    }
    last_ = piece;
    return piece.tokens.size();
  }

  // Tokens that all sessions have read, but for those of a batch.
  size_t read() const { return read_; }

  // That both have the same state, and have predicted the same.
  void ExpectEqual() {
    ASSERT_EQ(std::memcmp(moved_logits_, plain_logits_, sizeof(plain_logits_)), 0);
    ASSERT_EQ(tarn_session_tokens(moved_), tarn_session_tokens(plain_));
    Check(tarn_session_save(plain_, plain_state_.data(), plain_state_.size(), &error_), error_);
    Check(tarn_session_save(moved_, moved_state_.data(), moved_state_.size(), &error_), error_);
    const size_t size = static_cast<size_t>(tarn_session_snapshot_bytes(plain_));
    ASSERT_EQ(std::memcmp(plain_state_.data(), moved_state_.data(), size), 0);
  }

 private:
  Piece Random() {
    Piece piece;
    piece.as_chunk = random_() % 4 != 0;
    piece.tokens.resize(1 + random_() % (piece.as_chunk ? kMostTokens : 8));
    for (int32_t& token : piece.tokens) token = static_cast<int32_t>(random_() % kVocab);
    return piece;
  }

  // Logits are borrowed until the next call.
  static void CopyLogits(const float* logits, float (*copy)[kVocab]) {
    ASSERT_NE(logits, nullptr);
    std::memcpy(*copy, logits, sizeof(*copy));
  }

  const float* Feed(tarn_session* session, const Piece& piece) {
    read_ += piece.tokens.size();
    const float* logits = nullptr;
    if (piece.as_chunk) {
      Check(tarn_session_prefill(session, piece.tokens.data(), piece.tokens.size(), &logits, &error_), error_);
    } else {
      for (const int32_t& token : piece.tokens) Check(tarn_session_step(session, &token, &logits, &error_), error_);
    }
    return logits;
  }

  // Feeds it to the session that leaves, in calls that the checkpoints know.
  void Record(const Piece& piece) {
    const size_t count = piece.as_chunk ? piece.tokens.size() : 1;
    for (size_t at = 0; at < piece.tokens.size(); at += count) {
      const Piece part = {
          {piece.tokens.begin() + static_cast<ptrdiff_t>(at), piece.tokens.begin() + static_cast<ptrdiff_t>(at + count)},
          piece.as_chunk};
      const float* const logits = Feed(moved_, part);
      CopyLogits(logits, &moved_logits_);
      Check(tarn_checkpoints_record(checkpoints_, part.tokens.data(), count, logits, &error_), error_);
    }
  }

  // Something that is not of the text.
  void ReadOther() {
    for (size_t i = 1 + random_() % 2; i-- > 0;) Record(Random());
  }

  void GoBackToAMark() {
    const uint64_t position = tarn_session_tokens(moved_);
    Check(tarn_checkpoints_mark(checkpoints_, position, nullptr, &error_), error_);
    ReadOther();
    Check(tarn_checkpoints_rewind_to_tag(checkpoints_, position, nullptr, &error_), error_);
  }

  // Before the last piece, which is read again.
  void GoBackAPiece() {
    const uint64_t position = tarn_session_tokens(moved_) - last_.tokens.size();
    if (position < tarn_checkpoints_earliest(checkpoints_)) return;
    ReadOther();
    Check(tarn_checkpoints_rewind(checkpoints_, position, nullptr, &error_), error_);
    Record(last_);
  }

  void Fork() {
    Check(tarn_session_copy(fork_, moved_, &error_), error_);
    ReadOther();
    Check(tarn_session_copy(moved_, fork_, &error_), error_);
    Feed(fork_, Random());
    Restart();
  }

  void SaveAndRestore() {
    SaveBase();
    ReadOther();
    tarn_session_reset(moved_);
    Check(tarn_session_restore(moved_, base_.data(), base_.size(), &error_), error_);
    Restart();
  }

  void SaveAndRestoreDelta() {
    uint64_t size = 0;
    Check(tarn_session_delta_bytes(moved_, base_.data(), base_.size(), &size, &error_), error_);
    ASSERT_LE(size, delta_.size());
    Check(tarn_session_save_delta(moved_, base_.data(), base_.size(), delta_.data(), size, &error_), error_);
    ReadOther();
    Check(tarn_session_restore_delta(moved_, base_.data(), base_.size(), delta_.data(), size, &error_), error_);
    Restart();
  }

  // The piece is read in a batch, beside sequences that come and go.
  void JoinAndLeave(const Piece& piece) {
    const uint32_t place = static_cast<uint32_t>(random_() % kPlaces);
    Check(tarn_session_copy_sequence(batch_, place, moved_, 0, &error_), error_);
    const Piece other = Random();
    const size_t count = piece.as_chunk ? piece.tokens.size() : 1;
    const float* logits = nullptr;
    for (size_t at = 0; at < piece.tokens.size(); at += count) {
      std::vector<tarn_sequence_tokens> parts;
      for (uint32_t i = 0; i < kPlaces; ++i) {
        if (i == place) {
          parts.push_back({i, &piece.tokens[at], count});
        } else if (random_() % 2 == 0) {
          parts.push_back({i, other.tokens.data(), 1 + random_() % other.tokens.size()});
        } else if (random_() % 4 == 0) {
          Check(tarn_session_reset_sequence(batch_, i, &error_), error_);
        }
      }
      Check(tarn_session_prefill_sequences(batch_, parts.data(), parts.size(), &logits, &error_), error_);
      for (size_t i = 0; parts[i].sequence != place; ++i) logits += kVocab;
    }
    CopyLogits(logits, &moved_logits_);
    Check(tarn_session_copy_sequence(moved_, 0, batch_, place, &error_), error_);
    Restart();
  }

  void SaveBase() { Check(tarn_session_save(moved_, base_.data(), base_.size(), &error_), error_); }
  void Restart() { Check(tarn_checkpoints_restart(checkpoints_, &error_), error_); }

  std::mt19937 random_{1};
  tarn_error error_{};
  tarn_model* model_ = nullptr;
  tarn_session *plain_ = nullptr, *moved_ = nullptr, *fork_ = nullptr, *batch_ = nullptr;
  tarn_checkpoints* checkpoints_ = nullptr;
  std::vector<uint8_t> plain_state_, moved_state_, base_, delta_;
  float plain_logits_[kVocab] = {}, moved_logits_[kVocab] = {};
  Piece last_;
  size_t read_ = 0;
};

TEST(Soak, WhateverHappensToASessionItComesBackToTheSameBits) {
  const char* const wanted = std::getenv("TARN_SOAK_TOKENS");
  const size_t most = wanted == nullptr ? 50000 : static_cast<size_t>(std::strtoull(wanted, nullptr, 10));
  ASSERT_GT(most, 0u) << "TARN_SOAK_TOKENS is " << wanted;
  Soak soak;
  size_t tokens = 0, pieces = 0, early = 0;
  for (; tokens < most && !testing::Test::HasFailure(); ++pieces) {
    tokens += soak.Advance();
    if (!testing::Test::HasFailure()) soak.ExpectEqual();
    if (early == 0 && tokens >= most / 10) early = AnonymousBytes();
    if (pieces % 50000 == 49999) {
      std::printf("%zu of %zu tokens\n", tokens, most);
      std::fflush(stdout);
    }
  }
  ASSERT_FALSE(testing::Test::HasFailure()) << "after " << tokens << " tokens";
  const size_t late = AnonymousBytes();
  std::printf(
      "%zu tokens (%zu read in all), equal %zu times, anonymous memory %zu KB after a tenth of them and %zu KB at the end\n",
      tokens, soak.read(), pieces, early / 1024, late / 1024);
  // A short text, as on an emulator, ends before the process has all of its memory.
  if (most >= 20000) {
    EXPECT_LE(late, early + (64u << 10)) << "memory has grown";
  }
}

}  // namespace
}  // namespace tarn
