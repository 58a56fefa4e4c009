// Drafts from the text itself: what followed the last tokens where they stood before.
//
// The last `capacity` tokens of the text, and tables of a fixed size that know for runs of tokens of some lengths where the last
// one of them ended. A draft copies from there on; where the copy reaches its own begin it goes on with itself, so that a loop is
// continued for ever. Every token of the text says whether the copy was right about it, drafted or not: how often it is, by the
// length of what matches, is known without a run of the model.
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
  static constexpr uint32_t kOrders[] = {16, 8, 4, 2};
  static constexpr size_t kTables = 4;
  static constexpr size_t kLengths = 12;

  // How often a copy was right; old tokens count less. What little was seen of a length says less than the next shorter one.
  struct Record {
    float right = 0, all = 0;
    void Add(bool is_right);
    float Share(float of_shorter) const { return (right + kPrior * of_shorter) / (all + kPrior); }
  };
  static constexpr float kPrior = 2, kShareOfNone = 0.2f;

  static size_t LengthClass(uint64_t match);
  int32_t& at(uint64_t position) const { return history_[static_cast<size_t>(position) & (history_.size() - 1)]; }
  uint32_t& Place(size_t table, uint64_t end) const;
  // Looks for a longer match than `match_`.
  void Search();
  bool Matches(uint64_t position, uint32_t order) const;

  Span<int32_t> history_;           // [capacity], a ring
  Span<uint32_t> tables_[kTables];  // [2 capacity] the low bits of positions
  uint64_t end_ = 0;                // tokens of the text
  uint64_t source_ = 0;             // where a draft begins
  uint64_t match_ = 0;              // tokens before it that are those before the end; 0: there is no draft
  Record records_[kLengths];
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_NGRAM_DRAFTS_H_
