// The normalizers of tokenizer.json, compiled into tables that runtime/text/normalize.h runs.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/tokenizer/unicode.h"

namespace tarn::convert {

struct NormalizerStep {
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,
    kPrepend,
    kReplace,
    kReplaceMatches,   // of a pattern
    kSurroundMatches,  // of a pattern of one character
    kStrip,            // spaces at the begin and the end
    kBytes,            // of each character, as letters of the byte-level alphabet
    kCharsMap,         // the words of CompileCharsMap() in `charsmap`
  };
  Kind kind;
  std::string text = {};                         // kPrepend: what; kReplace: what is looked for; the pattern
  std::string content = {};                      // what replaces it, or what is put before and behind it
  UnicodeVersion version = UnicodeVersion::k16;  // of the pattern
  bool left = false, right = false;              // kStrip
  std::vector<uint16_t> charsmap = {};
};

// The words of runtime/text/normalize_format.h: the steps, one after the other, with the Unicode data that they need.
// Errors: more than 16 steps; a text that is empty, longer than 32 characters or not UTF-8; a pattern that matches the empty text
// or looks more than 32 characters ahead; a second charsmap; steps that together make a text too long. The line begins with
// `where`.
std::vector<uint16_t> CompileNormalizer(const std::vector<NormalizerStep>& steps, const std::string& where);

// What these words make of a text; none: the text.
std::string Normalized(const std::vector<uint16_t>& words, const std::string& text);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZE_H_
