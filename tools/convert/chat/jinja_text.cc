#include "tools/convert/chat/jinja_text.h"

#include <algorithm>

#include "runtime/text/chat_template.h"

namespace tarn::convert {
namespace {

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string_view StripSpaces(std::string_view text, bool at_begin, bool at_end) {
  const Span<const char> trimmed = TrimSpaces({text.data(), text.size()}, at_begin, at_end);
  return {trimmed.data(), trimmed.size()};
}

size_t CharacterBytes(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && IsContinuation(text[end])) ++end;
  return end - at;
}

size_t CharacterBytesBefore(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && IsContinuation(text[begin])) --begin;
  return end - begin;
}

std::string_view StripCharacters(std::string_view text, std::string_view set, bool at_begin, bool at_end) {
  while (at_begin && !text.empty()) {
    const size_t bytes = CharacterBytes(text, 0);
    if (set.find(text.substr(0, bytes)) == std::string_view::npos) break;
    text.remove_prefix(bytes);
  }
  while (at_end && !text.empty()) {
    const size_t bytes = CharacterBytesBefore(text, text.size());
    if (set.find(text.substr(text.size() - bytes)) == std::string_view::npos) break;
    text.remove_suffix(bytes);
  }
  return text;
}

size_t CountCharacters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), IsContinuation));
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<uint8_t>(byte) < 0x80; });
}

void AppendUtf8(uint32_t code, std::string* text) {
  const auto put = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace tarn::convert
