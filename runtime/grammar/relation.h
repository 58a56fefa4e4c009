// Which numbers belong to which: lists by number, in one array.
#ifndef TARN_RUNTIME_GRAMMAR_RELATION_H_
#define TARN_RUNTIME_GRAMMAR_RELATION_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"

namespace tarn {

class Relation {
 public:
  explicit Relation(const Allocator& allocator) : pairs_(allocator), first_(allocator), sorted_(allocator) {}

  // False: out of memory.
  [[nodiscard]] bool Add(uint32_t from, uint32_t to) { return pairs_.Push({from, to}); }
  // Behind the last Add(); numbers `from` are below `count`. Errors: TARN_OUT_OF_MEMORY.
  Status Sort(size_t count) {
    TARN_GROW_OR_RETURN(first_.Resize(count + 1));
    TARN_GROW_OR_RETURN(sorted_.Resize(pairs_.size()));
    for (const Pair& pair : pairs_) ++first_[pair.from];
    uint32_t end = 0;
    for (uint32_t& first : first_) first = end += first;
    for (size_t i = pairs_.size(); i-- > 0;) sorted_[--first_[pairs_[i].from]] = pairs_[i].to;
    return Ok();
  }
  Span<const uint32_t> Of(uint32_t from) const { return {sorted_.data() + first_[from], first_[from + 1] - first_[from]}; }

 private:
  struct Pair {
    uint32_t from, to;
  };
  Array<Pair> pairs_;
  Array<uint32_t> first_, sorted_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_RELATION_H_
