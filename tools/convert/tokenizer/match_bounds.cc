#include "tools/convert/tokenizer/match_bounds.h"

#include <algorithm>
#include <functional>

#include "runtime/text/pattern_format.h"

namespace tarn::convert {
namespace {

constexpr size_t kStart = 1;

}  // namespace

MatchBounds::MatchBounds(const std::vector<uint16_t>& words) : stride_(words[1]), states_(words[2]) {
  roots_ = words.data() + kPatternHeaderWords;
  leaves_ = roots_ + kPatternRoots;
  transitions_ = leaves_ + words[3] * kPatternLeaf / 2;
  inert_.assign(stride_, true);
  for (size_t state = kStart; state < states_; ++state) {
    for (size_t of = 1; of < stride_; ++of) {
      if (Entry(state, of) != (Entry(state, 0) & 1)) inert_[of] = false;
    }
  }
}

size_t MatchBounds::ClassOf(uint32_t code) const {
  const size_t at = roots_[code / kPatternLeaf] * kPatternLeaf + code % kPatternLeaf;
  return leaves_[at / 2] >> (at % 2 * 8) & 0xFF;
}

bool MatchBounds::MatchesEmptyText() const {
  bool matches = false;
  for (size_t of = 0; of < stride_; ++of) matches = matches || (Entry(kStart, of) & 1) != 0;
  return matches;
}

std::optional<size_t> MatchBounds::MostWaiting() const {
  constexpr size_t kUnknown = SIZE_MAX, kOpen = SIZE_MAX - 1;
  std::vector<size_t> depths(states_, kUnknown);  // the most characters from a state on that end no match
  bool is_bounded = true;
  const std::function<size_t(size_t)> depth = [&](size_t state) -> size_t {
    if (depths[state] == kOpen) is_bounded = false;
    if (depths[state] != kUnknown) return is_bounded ? depths[state] : 0;
    depths[state] = kOpen;
    size_t most = 0;
    for (size_t of = 1; of < stride_; ++of) {
      const size_t next = Entry(state, of) / 2 / stride_;
      if (next != 0 && (Entry(state, of) & 1) == 0) most = std::max(most, 1 + depth(next));
    }
    return depths[state] = most;
  };
  size_t most = 0;
  for (size_t state = kStart; state < states_ && is_bounded; ++state) most = std::max(most, depth(state));
  return is_bounded ? std::optional<size_t>(most + 2) : std::nullopt;  // and the character that a match ended before, and the last
}

}  // namespace tarn::convert
