// Drafts from a smaller model of the same vocabulary. It draws with the numbers that the sampler will draw with, on its own
// logits: where both models agree they pick the same token.
#ifndef TARN_RUNTIME_GENERATION_MODEL_DRAFTS_H_
#define TARN_RUNTIME_GENERATION_MODEL_DRAFTS_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/session/session.h"
#include "runtime/text/sampler.h"

namespace tarn {

class ModelDrafts {
 public:
  // Until Use() there are no drafts. `sampler` nullptr: the most probable token is drafted.
  void Use(Session* session, Sampler* sampler, uint32_t vocab_size) {
    session_ = session;
    sampler_ = sampler;
    vocab_size_ = vocab_size;
  }
  bool is_used() const { return session_ != nullptr; }
  // Only counts when `bump` has no block.
  void TakeArrays(Bump* bump);
  void Reset();

  // The next token of the text.
  void Add(int32_t token);
  // The next tokens of the text, all of which the session reads.
  void Read(const int32_t* tokens, size_t count);
  // At most `most` drafts, of which none comes if the session cannot go on. Behind the text that was added.
  size_t Draft(size_t most, int32_t* tokens);
  // Of the last drafts the first `accepted` are in the text now, and have been added to nothing; they are.
  void Keep(size_t accepted, const int32_t* drafts);

  // That a draft is right, if those before it are.
  float share() const { return (right_ + 0.5f) / (all_ + 1.0f); }
  float step_ns() const { return step_ns_; }
  // Whether it is time to try again, where drafts have not been worth their time.
  bool is_due() const { return waited_ >= pause_; }
  void WasWorthIt(bool is_worth);

 private:
  static constexpr size_t kWaiting = 64;
  static constexpr uint32_t kFirstPause = 16, kMostPause = 1024;

  // Feeds the tokens that wait. Returns the logits behind them.
  const float* Flush();
  int32_t Guess(const float* logits);

  Session* session_ = nullptr;
  Sampler* sampler_ = nullptr;
  uint32_t vocab_size_ = 0;
  Span<uint8_t> state_;          // of the session, before the drafts
  Span<uint8_t> sampler_state_;  // before it guesses
  int32_t waiting_[kWaiting];    // the last tokens that the session has not read; the oldest go
  size_t waiting_count_ = 0;
  size_t drafted_ = 0;  // by the last Draft, and:
  size_t read_ = 0;     // of those drafts, how many the session has read
  float right_ = 0, all_ = 0;
  float step_ns_ = 0;
  uint32_t waited_ = kFirstPause, pause_ = kFirstPause;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_MODEL_DRAFTS_H_
