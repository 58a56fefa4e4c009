#include "tools/convert/tokenizer/utf8_codes.h"

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/unicode.h"

namespace tarn::convert {

size_t DecodeUtf8(std::string_view text, uint32_t* code) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return *code = byte(0), 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
  if (length == 0 || length > text.size()) return 0;
  *code = byte(0) & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    *code = *code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = *code < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  return overlong || *code > kMaxCodePoint || (*code >= 0xD800 && *code < 0xE000) ? 0 : length;
}

std::vector<uint32_t> CodesOfUtf8(std::string_view text, const std::string& where) {
  std::vector<uint32_t> codes;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = DecodeUtf8(text.substr(at), &code);
    if (length == 0) Fail(where, ": byte ", at, " of a text of ", text.size(), " bytes is not UTF-8");
    codes.push_back(code);
    at += length;
  }
  return codes;
}

}  // namespace tarn::convert
