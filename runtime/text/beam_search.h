// Beam search over a batch of sources: from the logits of all beams to the tokens that each goes on with.
//
//   log p(y_1 .. y_n) = sum_t log softmax(logits_t)[y_t]
//   score(y) = log p(y) / ((5 + n) / 6)^alpha          alpha = length_penalty, n counts the end token
//
// (Wu et al. 2016, equation 14, without coverage). A source begins with one live beam. At every step all continuations of its live
// beams are candidates, beams x vocab_size of them:
//   - The `beams` most probable ones that do not end live on.
//   - One that ends is finished if it is among the `beams` most probable of all candidates, those that end included. Otherwise
//     outputs that the search itself would never follow could win, because they are short. The `beams` best finished ones by score
//     are kept.
//   - Those alive after max_output_tokens steps are finished as they are, without an end token.
// A source is done when nothing lives, or when it has `beams` finished ones that no live one can beat: log probabilities only fall
// and the penalty only grows, so that a live one ends at best with log p / ((5 + max_output_tokens) / 6)^alpha.
// One beam is greedy decoding: the largest logit of every step, done with the first end token.
//
// Equally probable candidates: the lower beam first, then the larger logit, then the lower id. Equal scores: the earlier one first.
// Sums are in double. So is log softmax, up to the error of log_sum_exp.h.
#ifndef TARN_RUNTIME_TEXT_BEAM_SEARCH_H_
#define TARN_RUNTIME_TEXT_BEAM_SEARCH_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/result.h"
#include "core/span.h"

namespace tarn {

class Bump;

// Fields as in tarn_beam_config.
struct BeamConfig {
  uint32_t sources;
  uint32_t beams;
  uint32_t vocab_size;
  uint32_t max_output_tokens;
  float length_penalty;
  int32_t bos_token;
  int32_t eos_token;
};

struct Hypothesis {
  Span<const int32_t> tokens;  // without begin and end token
  double score = 0;
};

// Sequences are numbered source by source: those of source s are [s * beams, (s + 1) * beams).
class BeamSearch {
 public:
  // What Create() allocates. Errors: TARN_INVALID_ARGUMENT (names the field and its range).
  static Result<uint64_t> SizeBytes(const BeamConfig& config);
  // One allocation, which holds the search as well; none later. Errors: those of SizeBytes(), TARN_OUT_OF_MEMORY.
  static Result<BeamSearch*> Create(const BeamConfig& config, const Allocator& allocator);
  // Accepts nullptr.
  static void Destroy(BeamSearch* search);

  // Takes the step that `logits` [sources * beams, vocab_size] ask for. Rows of sequences that are not alive are not read.
  // Errors: TARN_INVALID_ARGUMENT (a logit is NaN or +inf, or all of a row are -inf: names the sequence; or all sources are done);
  //   nothing has changed.
  Status Advance(const float* logits);

  // What every sequence is fed next; the begin token where none lives.
  Span<const int32_t> tokens() const { return tokens_; }
  // The sequence that each went on from in the last step, of the same source; itself where none lives.
  Span<const uint32_t> parents() const { return parents_; }
  bool done() const { return running_ == 0; }

  // The finished hypothesis that is `rank`-th best of a source, in the one buffer there is for its tokens.
  // Errors: TARN_INVALID_ARGUMENT (no such source), TARN_NOT_FOUND (fewer are finished).
  Result<Hypothesis> Get(uint32_t source, uint32_t rank);

  // Back to the begin tokens.
  void Reset();

 private:
  struct Candidate {
    double log_prob;  // of the whole sequence
    uint32_t parent;  // sequence
    float logit;
    int32_t token;
    bool operator<(const Candidate& other) const {  // "comes first"
      if (log_prob != other.log_prob) return log_prob > other.log_prob;
      if (parent != other.parent) return parent < other.parent;
      if (logit != other.logit) return logit > other.logit;
      return token < other.token;
    }
  };
  // log p of a continuation = base + (logit - largest).
  struct Row {
    double base;
    float largest;
  };
  struct Link {
    int32_t token;
    uint32_t parent;
  };
  struct Finished {
    double score;
    uint32_t count;     // tokens, without the end
    uint32_t sequence;  // where they end in links_, after `count` steps
  };

  explicit BeamSearch(const BeamConfig& config);

  // Lays the arrays out; only counts when `bump` has no block.
  void TakeArrays(Bump& bump);

  Status MeasureRows(const float* logits);
  void AdvanceSource(uint32_t source, const float* logits);
  size_t CollectContinuations(uint32_t source, const float* logits);
  size_t CollectEndings(uint32_t source, const float* logits);
  void FinishEndings(uint32_t source, size_t continuations, size_t endings);
  void GoOn(uint32_t source, size_t continuations);
  void Finish(uint32_t source, double log_prob, uint32_t length, uint32_t count, uint32_t sequence);
  bool CannotImprove(uint32_t source) const;
  void StopSequences(uint32_t begin, uint32_t end);
  double Penalty(uint32_t length) const;

  BeamConfig config_;
  Block block_;
  uint32_t steps_ = 0;    // taken
  uint32_t running_ = 0;  // sources that are not done

  // [sources * beams]
  Span<int32_t> tokens_;
  Span<uint32_t> parents_;
  Span<double> log_probs_;
  Span<Row> rows_;
  Span<Finished> finished_;  // of each source, best first
  // [sources]
  Span<uint32_t> live_;  // its first sequences; 0: done
  Span<uint32_t> finished_count_;

  Span<Link> links_;            // [max_output_tokens, sources * beams]: what each sequence was after every step
  Span<Candidate> candidates_;  // [2 * beams]: halved when full, which costs O(1) per candidate
  Span<Candidate> endings_;     // [beams]
  Span<int32_t> output_;        // [max_output_tokens]
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_BEAM_SEARCH_H_
