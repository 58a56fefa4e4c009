// Text that came from a file or a command line, for a terminal.
#ifndef TARN_TOOLS_COMMON_PRINTABLE_H_
#define TARN_TOOLS_COMMON_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tarn::tools {

// `text` on one line that cannot steer a terminal: bytes of hidden characters, and those that are no UTF-8, are shown as "\x1b".
std::string Printable(std::string_view text);

// The bytes of the character that `text` begins with, where Printable() shows it as it is; 0: it does not.
size_t VisibleCharacter(std::string_view text);

// `text` as a string of JSON, with its quotes: ASCII without control characters. Bytes that are no UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);
void AppendJsonString(std::string_view text, std::string* out);
// Without the quotes: a part of a string, of whole characters.
void AppendJsonCharacters(std::string_view text, std::string* out);

// As Printable(), for an error, of bounded length: of a text above 1,000 bytes the middle is left out, and said to be.
std::string ErrorLine(std::string_view text);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_PRINTABLE_H_
