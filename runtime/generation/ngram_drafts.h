// Drafts from the text itself: what followed the last tokens where they stood before.
//
// The last `capacity` tokens of the text, and for each of some contexts a table of a fixed size. A context is a set of tokens
// before a token: the last 12, the last 6, ..., the third last and the last, which bridges one that differs. A table knows where
// what is in the context stood last, and how often in a row the token there was the same.
//
// Where the last 12 tokens stood before, the text is copied from there, for as long as that is right. Elsewhere every context that
// is known votes for the token that followed it; a vote weighs the logarithm of the odds that votes of its context and count were
// right, and the draft is the token whose votes weigh most. A draft's probability is how often drafts of its kind were right:
// copies of that length, or votes of that weight. The next draft is that of the text with this one behind it, so that a loop is
// continued for ever. Every token of the text says which votes were right, and whether its draft was, fed or not: that takes no run
// of the model.
#ifndef TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_
#define TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/generation/draft_record.h"

namespace tarn {

class NgramDrafts {
 public:
  static constexpr uint32_t kLeastCapacity = 64;

  // For the last `capacity` tokens, a power of two; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t capacity);
  void Clear();

  // The next token of the text.
  void Add(int32_t token);

  // What comes next, at most `most` tokens; probabilities[i]: that token i is right if those before it are. Returns how many: no
  // more than have a chance to be reached.
  size_t Draft(size_t most, int32_t* tokens, float* probabilities);

 private:
  // Bit i: the token i + 1 before. Chosen by trial on source code.
  static constexpr uint32_t kContexts[] = {0xFFF, 0x3F, 0x0F, 0x07, 0x0B, 0x0D, 0x03, 0x05, 0x06, 0x01, 0x02};
  static constexpr size_t kTables = sizeof(kContexts) / sizeof(kContexts[0]);
  static constexpr uint32_t kCounts = 4;
  static constexpr size_t kLengths = 3, kWeights = 24;
  static constexpr uint32_t kPositions = (1u << 30) - 1;

  // Where a token stood, and how often in a row it was the same, up to kCounts - 1.
  struct Place {
    uint32_t position : 30;  // its low bits, kPositions
    uint32_t count : 2;
  };

  static constexpr float kPriorShare = 0.4f;

  // What a table knows of a context.
  struct Found {
    Place* place;
    bool is_known;
    int32_t token;  // that followed it
  };

  struct Choice {
    int32_t token;
    size_t kind;  // a place in drafts_
  };

  int32_t& at(uint64_t position) const { return history_[static_cast<size_t>(position) & (history_.size() - 1)]; }
  // Tokens back to the first one of a context.
  static uint64_t Reach(size_t table);
  // A token of the text, or one of the drafts behind it.
  int32_t TokenAt(uint64_t position, const int32_t* drafts) const {
    return position < end_ ? at(position) : drafts[static_cast<size_t>(position - end_)];
  }
  // Of the context of each table before `end`.
  void Find(uint64_t end, const int32_t* drafts, Found (&found)[kTables]) const;
  // The same of the end of the text, once for each.
  void FindHere();
  // What comes next, behind `end`. False: no context is known.
  bool Choose(uint64_t end, const int32_t* drafts, Choice* choice);
  bool Vote(const Found (&found)[kTables], Choice* choice) const;
  // Goes on with a copy that `token` continues, ends another one.
  void Copy(int32_t token);
  static size_t LengthClass(uint64_t length) { return length == 0 ? 0 : length < 16 ? 1 : 2; }
  // Of the context of `table` before `end`.
  Place& PlaceOf(size_t table, uint64_t end, const int32_t* drafts) const;
  // The context before `end` is that before the place, which is in the history of the text: at(*source) is the token there.
  bool Matches(const Place& place, size_t table, uint64_t end, const int32_t* drafts, uint64_t* source) const;

  Span<int32_t> history_;        // [capacity], a ring
  Span<Place> tables_[kTables];  // [capacity]
  uint64_t end_ = 0;             // tokens of the text
  bool is_copy_ = false;         // the text goes on as behind copy_
  uint64_t copy_ = 0;            // a position
  uint64_t length_ = 0;          // tokens of the copy that were right
  Found here_[kTables];          // of the end of the text, if:
  bool is_here_ = false;
  DraftRecord votes_[kTables][kCounts];
  DraftRecord drafts_[kLengths + kWeights];
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_
