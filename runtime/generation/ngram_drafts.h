// Drafts from the text itself: what followed the last tokens where they stood before.
//
// The last `capacity` tokens of the text, and for each of some contexts a table of a fixed size. A context is a set of tokens
// before a token: the last 16, the last 8, ..., the third last and the last, which bridges one that differs. A table knows where
// what is in the context stood last, and how often in a row the token there was the same. A draft is the token of the first context
// that is known; the next draft is that of the text with this one behind it, so that a loop is continued for ever. Every token of
// the text says whether its draft was right, fed or not: how often such drafts are, by context and by that count, is known without
// a run of the model.
#ifndef TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_
#define TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"

namespace tarn {

class NgramDrafts {
 public:
  static constexpr uint32_t kLeastCapacity = 64;

  // For the last `capacity` tokens, a power of two; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t capacity);
  void Clear();

  // The next token of the text.
  void Add(int32_t token);

  // What comes next, at most `most` tokens; probabilities[i]: that token i is right if those before it are. Returns how many.
  size_t Draft(size_t most, int32_t* tokens, float* probabilities) const;

 private:
  // Bit i: the token i + 1 before. The first that is known is taken; chosen by trial on source code.
  static constexpr uint32_t kContexts[] = {0xFFFF, 0xFF, 0x0F, 0x03, 0x05, 0x01, 0x02};
  static constexpr size_t kTables = sizeof(kContexts) / sizeof(kContexts[0]);
  static constexpr uint32_t kCounts = 4;
  static constexpr size_t kStreaks = 3;
  static constexpr uint32_t kPositions = (1u << 30) - 1;

  // Where a token stood, and how often in a row it was the same, up to kCounts - 1.
  struct Place {
    uint32_t position : 30;  // its low bits, kPositions
    uint32_t count : 2;
  };

  // How often drafts of a kind were right; old ones count less, and what little was seen says little.
  struct Record {
    float right = 0, all = 0;
    void Add(bool is_right);
    float share() const { return (right + kPrior * kPriorShare) / (all + kPrior); }
  };
  static constexpr float kPrior = 2, kPriorShare = 0.4f;

  int32_t& at(uint64_t position) const { return history_[static_cast<size_t>(position) & (history_.size() - 1)]; }
  static size_t StreakClass(uint64_t streak) { return streak < 8 ? 0 : streak < 32 ? 1 : 2; }
  // Tokens back to the first one of a context.
  static uint64_t Reach(size_t table);
  // A token of the text, or one of the drafts behind it.
  int32_t TokenAt(uint64_t position, const int32_t* drafts) const {
    return position < end_ ? at(position) : drafts[static_cast<size_t>(position - end_)];
  }
  // Of the context of `table` before `end`.
  Place& PlaceOf(size_t table, uint64_t end, const int32_t* drafts) const;
  // The context before `end` is that before the place, which is in the history of the text: at(*source) is the token there.
  bool Matches(const Place& place, size_t table, uint64_t end, const int32_t* drafts, uint64_t* source) const;

  Span<int32_t> history_;        // [capacity], a ring
  Span<Place> tables_[kTables];  // [2 capacity]
  uint64_t end_ = 0;             // tokens of the text
  uint64_t streak_ = 0;          // drafts that were right in a row
  Record records_[kTables][kCounts][kStreaks];
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_
