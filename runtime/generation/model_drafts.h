// Drafts from a smaller model of the same vocabulary. It draws with the numbers that the sampler will draw with, on its own
// logits: where both models agree they pick the same token. How probable it finds the token says how probable it is that the larger
// model picks it, too; so the model makes drafts for as long as one more is worth its time.
#ifndef TARN_RUNTIME_GENERATION_MODEL_DRAFTS_H_
#define TARN_RUNTIME_GENERATION_MODEL_DRAFTS_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/generation/draft_costs.h"
#include "runtime/generation/draft_record.h"
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
  // At most `most` drafts behind the text that was added; none if the session cannot go on, or if the first is not worth its row.
  size_t Draft(size_t most, const DraftCosts& costs, int32_t* tokens);
  // Of the last drafts the first `accepted` are in the text now, and have been added to nothing; they are. Drafts and a run of
  // the model took `ns`.
  void Keep(size_t accepted, const int32_t* drafts, uint64_t ns, const DraftCosts& costs);

  // There was no run: none of the last drafts has become text, and none was wrong.
  void Forget();

  // Tokens in the time of a step, on the average of the last runs with drafts of this model.
  float rate() const { return (tokens_ + kPriorSteps * kPriorRate) / (steps_ + kPriorSteps); }
  // Whether it is time to try again, where drafts have not been worth their time.
  bool is_due() const { return waited_ >= pause_; }
  void WasWorthIt(bool is_worth);

 private:
  static constexpr size_t kWaiting = 64;
  static constexpr uint32_t kFirstPause = 16, kMostPause = 1024;
  static constexpr float kPriorSteps = 4, kPriorRate = 1.2f, kUnknownDraftCost = 0.2f;
  static constexpr size_t kKinds = 12, kMostAtOnce = 64;

  // Feeds the tokens that wait. Returns the logits behind them.
  const float* Flush();
  // Its kind is how probable the model finds it: kind i above 1 - 2^-i. Negative: no token.
  int32_t Guess(const float* logits, size_t* kind);
  // That a draft of a kind is right, if those before it are.
  float Probability(size_t kind) const;
  // Of a draft, in steps, besides its row.
  float DraftCost(const DraftCosts& costs) const;
  // A run gave so many tokens in the time of so many steps.
  void NoteRun(size_t tokens, float steps);

  Session* session_ = nullptr;
  Sampler* sampler_ = nullptr;
  uint32_t vocab_size_ = 0;
  Span<uint8_t> state_;          // of the session, before the drafts
  Span<uint8_t> sampler_state_;  // before it guesses
  int32_t waiting_[kWaiting];    // the last tokens that the session has not read; the oldest go
  size_t waiting_count_ = 0;
  size_t drafted_ = 0;  // by the last Draft, and:
  size_t read_ = 0;     // of those drafts, how many the session has read
  uint8_t kinds_[kMostAtOnce];
  DraftRecord kinds_seen_[kKinds];
  DraftRecord seen_;              // drafts of all kinds
  float step_ns_ = 0;             // of a draft
  float tokens_ = 0, steps_ = 0;  // of the last runs
  uint32_t waited_ = 0, pause_ = kFirstPause;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_MODEL_DRAFTS_H_
