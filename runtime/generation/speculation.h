// Several tokens for one read of the weights, with the output of single steps.
//
//   block: [ Speculation | n-grams | model drafts | step log | call ]
//
// Drafts say what may come; one run of the model gives the logits behind each of them (Session::Steps), bit for bit those of single
// steps. Tokens are picked from them in order, as they would be without drafts, until one is picked that is not the next draft; the
// session goes back to there. So drafts decide how fast the text comes, and nothing else: with the same seed it is the same text.
// For a picked token x and a draft d that is given, this is the rule of Leviathan et al. 2023 (arXiv:2211.17192): d is accepted
// with probability p(d), and what is picked otherwise has the distribution p without d.
#ifndef TARN_RUNTIME_GENERATION_SPECULATION_H_
#define TARN_RUNTIME_GENERATION_SPECULATION_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/bump.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/generation/draft_costs.h"
#include "runtime/generation/model_drafts.h"
#include "runtime/generation/ngram_drafts.h"
#include "runtime/session/session.h"
#include "runtime/text/sampler.h"

namespace tarn {

// Who picks a token from logits [vocab]: a sampler, or else `pick`.
struct Picker {
  Sampler* sampler;
  int32_t (*pick)(void* context, const float* logits, size_t vocab_size);
  // Gets every token that is given out, in order; true: nothing follows it. nullptr: nobody wants that.
  int (*on_token)(void* context, int32_t token, const float* logits);
  void* context;
};

struct SpeculationConfig {
  uint32_t max_draft;  // 0: as many as the session takes, at most kMostDrafts
  uint32_t history_tokens;
  Session* draft;  // nullptr: n-grams alone
  float row_cost;  // 0: measured
};

struct SpeculationStats {
  uint64_t runs;      // of the model
  uint64_t drafted;   // tokens that were fed as drafts
  uint64_t accepted;  // of them, those that became text
};

class Speculation {
 public:
  static constexpr uint32_t kMostDrafts = 15;

  // Errors: TARN_INVALID_ARGUMENT (the session has no room for drafts, or several sequences; the draft's vocabulary is another
  // one), TARN_UNSUPPORTED (not a causal model), TARN_OUT_OF_MEMORY.
  static Result<uint64_t> Measure(Session* session, const Picker& picker, const SpeculationConfig& config);
  // Errors: those of Measure and of Block::From.
  static Result<Speculation*> Create(Session* session, const Picker& picker, const SpeculationConfig& config,
                                     const BlockSource& memory);
  static void Destroy(Speculation* speculation);

  // Another text begins. The draft session is reset.
  void Reset();
  // Tokens of the text that the session was given by other calls. Errors: TARN_INVALID_ARGUMENT (an id out of range: none is read).
  Status Read(const int32_t* tokens, size_t count);
  // Feeds `token`, which is the next of the text, and drafts behind it; picks 1 to `capacity` tokens that follow. The session has
  // read all of the text but the last of them. Errors: those of Prefill, and nothing has changed; those of the picker, and `*count`
  // tokens before it are given out and read.
  Status Step(int32_t token, int32_t* tokens, size_t capacity, size_t* count);

  const SpeculationStats& stats() const { return stats_; }

 private:
  Speculation(Session* session, const Picker& picker, const SpeculationConfig& config)
      : session_(session), picker_(picker), config_(config), costs_(config.row_cost) {}
  Status Check();
  void TakeArrays(Bump* bump);
  void Add(const int32_t* tokens, size_t count);
  size_t Room(size_t capacity) const;
  // Writes drafts behind call_[0]. Returns how many.
  size_t FindDrafts(size_t most);
  Status Pick(const float* logits, int32_t* token);
  // Gives a token out. Whether nothing follows it.
  bool Ends(int32_t token, const float* logits);

  Session* session_;
  Picker picker_;
  SpeculationConfig config_;
  uint32_t vocab_size_ = 0;
  DraftCosts costs_;
  NgramDrafts ngrams_;
  ModelDrafts model_;
  bool from_model_ = false;  // the drafts of the last run
  bool has_token_ = false;   // the drafts know the token that is fed next
  StepLog log_;
  Span<int32_t> call_;         // [max_draft + 1] the token, and drafts
  Span<float> probabilities_;  // [max_draft]
  SpeculationStats stats_{};
  Block block_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_SPECULATION_H_
