// Texts as Python has them: UTF-8 counted in code points.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_TEXT_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tarn::convert {

// Without the spaces at its ends: str.strip(), lstrip(), rstrip().
std::string_view StripSpaces(std::string_view text, bool at_begin, bool at_end);
// Without the characters of `set` at its ends: str.strip(set).
std::string_view StripCharacters(std::string_view text, std::string_view set, bool at_begin, bool at_end);

// Bytes of the character at `at`, or of the one that ends at `end`.
size_t CharacterBytes(std::string_view text, size_t at);
size_t CharacterBytesBefore(std::string_view text, size_t end);
size_t CountCharacters(std::string_view text);

bool IsAscii(std::string_view text);
void AppendUtf8(uint32_t code, std::string* text);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_TEXT_H_
