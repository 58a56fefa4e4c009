// Characters, escapes and classes of a regular expression, read from its text.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_READER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/convert/tokenizer/unicode.h"

namespace tarn::convert {

class PatternReader {
 public:
  // Errors: not UTF-8.
  PatternReader(std::string_view pattern, std::string where, UnicodeVersion version);

  bool AtEnd() const { return next_ == codes_.size(); }
  size_t position() const { return next_; }  // in characters
  // The character `ahead` further on; 0 behind the end.
  uint32_t Peek(size_t ahead = 0) const { return next_ + ahead < codes_.size() ? codes_[next_ + ahead] : 0; }
  uint32_t Take() { return AtEnd() ? 0 : codes_[next_++]; }
  // Takes `text` (of ASCII) if it stands here.
  bool TakeIf(std::string_view text);
  void SeekBack(size_t position) { next_ = position; }
  // A decimal number below 100,000, if one stands here.
  std::optional<uint32_t> TakeNumber();

  // What follows a backslash that was taken, if it is a class: \s, \p{L}, ...; \w is not the same inside and outside of [...].
  std::optional<CodeSet> TakeClassEscape(bool in_class);
  // What follows a backslash that was taken, if it is a character: \n, \x{20AC}, \. and the like.
  uint32_t TakeCharacterEscape();
  // What follows a '[' that was taken, up to its ']'.
  CodeSet TakeClass(bool ignore_case);

  [[noreturn]] void FailAt(size_t position, const std::string& message) const;

 private:
  CodeSet TakeProperty(bool negated, size_t begin);
  uint32_t TakeHex(size_t digits, size_t begin);
  uint32_t TakeRangeEnd(size_t begin);
  void TakeClassItem(CodeSet* set, bool ignore_case);
  CodeSet TakePosixBracket(size_t begin);

  std::string_view pattern_;
  const std::string where_;
  const UnicodeVersion version_;
  std::vector<uint32_t> codes_;
  std::vector<size_t> bytes_;  // where each begins
  size_t next_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_READER_H_
