// What a compiled pattern needs of the text around a match: for those who look for matches in a stream of characters.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_MATCH_BOUNDS_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_MATCH_BOUNDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tarn::convert {

// `words` are those of CompilePattern().
class MatchBounds {
 public:
  explicit MatchBounds(const std::vector<uint16_t>& words);

  bool MatchesEmptyText() const;
  // The most characters that are read before it is known whether they belong to a match. nullopt: any number.
  std::optional<size_t> MostWaiting() const;
  // No match has the character, and it means as much for a match before it as the end of the text.
  bool IsInert(uint32_t code) const { return inert_[ClassOf(code)]; }

 private:
  uint16_t Entry(size_t state, size_t of) const { return transitions_[state * stride_ + of]; }
  size_t ClassOf(uint32_t code) const;

  size_t stride_, states_;
  const uint16_t* roots_;
  const uint16_t* leaves_;
  const uint16_t* transitions_;
  std::vector<bool> inert_;  // of classes
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_MATCH_BOUNDS_H_
