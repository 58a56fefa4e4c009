// How much work the creation of a grammar may take: a grammar can be hostile.
#ifndef TARN_RUNTIME_GRAMMAR_EFFORT_H_
#define TARN_RUNTIME_GRAMMAR_EFFORT_H_

#include <cstdint>

#include "core/status.h"

namespace tarn {

constexpr uint64_t kMostWork = uint64_t{1} << 30;  // where nobody says: some seconds

// Counted in steps: a part of a rule, an edge of an automaton or a stack that is looked at. A step takes some nanoseconds.
class Effort {
 public:
  explicit Effort(uint64_t most) : most_(most) {}

  // False: that was too much.
  [[nodiscard]] bool Spend(uint64_t steps) {
    used_ += steps;
    return used_ <= most_;
  }
  Status LimitError() const {
    return Error(TARN_UNSUPPORTED,
                 "the creation of the grammar takes more than max_work %llu steps: shorten repetitions {m,n}, write fewer "
                 "alternatives that begin alike, or raise max_work",
                 static_cast<unsigned long long>(most_));
  }

 private:
  uint64_t most_;
  uint64_t used_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_EFFORT_H_
