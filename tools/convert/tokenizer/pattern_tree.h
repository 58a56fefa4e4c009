// A regular expression as a tree, and the parser that makes it of text.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_TREE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/convert/tokenizer/unicode.h"

namespace tarn::convert {

// What one character of look-ahead asks: that the next character is in `set`, or that the text ends and `at_end` is set.
struct Ahead {
  CodeSet set;
  bool at_end;
};

struct PatternNode {
  enum class Kind : uint8_t {
    kSet,        // one character of `set`; none fits an empty set
    kSequence,   // `children`, one behind the other; of none: the empty text
    kAlternate,  // the first child that leads to a match
    kRepeat,     // children[0], min to max times
    kAhead,      // the empty text where `ahead` holds
  };
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  Kind kind = Kind::kSequence;
  CodeSet set = {};
  Ahead ahead = {};
  std::vector<PatternNode> children = {};
  uint32_t min = 0, max = 0;
  bool greedy = true;
};

// Fails with `where`, the pattern and a mark at byte `at` of it.
[[noreturn]] void FailInPattern(std::string_view pattern, size_t at, const std::string& where, const std::string& message);

// Errors: syntax; what CompilePattern() refuses by its kind.
PatternNode ParsePattern(std::string_view pattern, const std::string& where, UnicodeVersion version);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_TREE_H_
