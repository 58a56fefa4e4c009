// The regular expressions of tokenizer.json, compiled into tables that runtime/text/pattern.h runs.
//
// The language is that of Oniguruma, as far as an automaton with one character of look-ahead can decide it: alternatives, groups,
// literals, escapes (\r \n \t \x{20AC} ...), classes (\p{L} \p{^Lu} \P{N} \s \d \w \h, [^...], ranges, [...&&...]), `.`, `$`, \z,
// (?i:...), greedy and lazy repeats, (?=x) and (?!x) where x is one class. Matches are leftmost-first, as a backtracking search
// finds them.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/convert/tokenizer/pattern_tree.h"
#include "tools/convert/tokenizer/unicode.h"

namespace tarn::convert {

// How a pattern sees a text.
struct PatternView {
  UnicodeVersion version = UnicodeVersion::k16;
  uint32_t space = ' ';   // a space is this character
  bool by_bytes = false;  // each byte is its letter of the byte-level alphabet (byte_alphabet.h); `space` does not count
};

// The words of runtime/text/pattern_format.h.
// Errors: what is outside the language, too large, or not UTF-8; the line begins with `where`, shows the pattern and the position.
std::vector<uint16_t> CompilePattern(std::string_view pattern, const std::string& where, const PatternView& view = {});

// The same, of a pattern that has no text; `name` is for messages.
std::vector<uint16_t> CompilePattern(const PatternNode& tree, std::string_view name, const std::string& where,
                                     const PatternView& view = {});

// A pattern that matches `text` itself (`{"String": ...}` of a Split).
std::string EscapePattern(std::string_view text);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_H_
