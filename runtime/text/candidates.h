// The tokens that may still be drawn, with their logits.
#ifndef TARN_RUNTIME_TEXT_CANDIDATES_H_
#define TARN_RUNTIME_TEXT_CANDIDATES_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"

namespace tarn {

struct Candidate {
  float logit;
  int32_t id;
  bool operator<(const Candidate& other) const {  // "comes first"
    return logit > other.logit || (logit == other.logit && id < other.id);
  }
};

// There is always one at least. They are in order, or, where nothing had to be ordered, by ascending id.
struct Candidates {
  Span<Candidate> room;
  size_t count = 0;      // room[0, count) are still in the race
  bool ordered = false;  // by Candidate's operator<
  float max_logit = 0;   // the largest of them

  Candidate* begin() const { return room.begin(); }
  Candidate* end() const { return room.begin() + count; }

  // log of a token's probability relative to the most probable one. The largest logit may be +inf.
  double RelativeLog(const Candidate& candidate) const {
    return candidate.logit == max_logit ? 0.0 : static_cast<double>(candidate.logit) - static_cast<double>(max_logit);
  }
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_CANDIDATES_H_
