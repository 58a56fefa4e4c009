#include "tools/convert/tokenizer/longest.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "runtime/text/code_point.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"
#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr char kUnknown[] = "<unk>";

std::string Utf8(uint32_t code) {
  char bytes[4];
  return {bytes, EncodeCodePoint(code, bytes)};
}

// The number at the beginning of `text`, which goes on behind it.
std::optional<uint32_t> TakeNumber(std::string_view* text) {
  uint32_t number = 0;
  size_t digits = 0;
  for (; digits < text->size() && digits < 9 && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits) {
    number = number * 10 + static_cast<uint32_t>((*text)[digits] - '0');
  }
  text->remove_prefix(digits);
  return digits == 0 ? std::nullopt : std::optional<uint32_t>(number);
}

// What stands behind a backslash.
std::optional<std::string> TakeEscape(std::string_view* text, bool is_bytes) {
  if (text->empty()) return std::nullopt;
  const char kind = text->front();
  text->remove_prefix(1);
  constexpr std::string_view kLetters = "\\'\"nrtabfv0", kMeant("\\'\"\n\r\t\a\b\f\v\0", 11);
  const size_t letter = kLetters.find(kind);
  if (letter != std::string_view::npos) return std::string(1, kMeant[letter]);
  const size_t digits = kind == 'x' ? 2 : is_bytes ? 0 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits == 0 || text->size() < digits) return std::nullopt;
  const std::string number(text->substr(0, digits));
  if (number.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return std::nullopt;
  text->remove_prefix(digits);
  const unsigned long code = std::strtoul(number.c_str(), nullptr, 16);
  if (is_bytes) return std::string(1, static_cast<char>(code));
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return std::nullopt;
  return Utf8(static_cast<uint32_t>(code));
}

// A literal of Python, a string or bytes.
std::optional<std::string> TakeLiteral(std::string_view* text) {
  const bool is_bytes = !text->empty() && text->front() == 'b';
  if (is_bytes) text->remove_prefix(1);
  if (text->empty() || (text->front() != '\'' && text->front() != '"')) return std::nullopt;
  const char quote = text->front();
  text->remove_prefix(1);
  std::string literal;
  while (!text->empty()) {
    const char next = text->front();
    text->remove_prefix(1);
    if (next == quote) return literal;
    if (next != '\\') {
      literal += next;
      continue;
    }
    const std::optional<std::string> escape = TakeEscape(text, is_bytes);
    if (!escape) return std::nullopt;
    literal += *escape;
  }
  return std::nullopt;
}

bool TakeSpace(std::string_view* text) {
  if (text->empty() || text->front() != ' ') return false;
  text->remove_prefix(1);
  return true;
}

struct Line {
  uint32_t id;
  std::string string;
};

std::optional<Line> ReadLine(std::string_view text) {
  const std::optional<uint32_t> id = TakeNumber(&text);
  if (!id || !TakeSpace(&text)) return std::nullopt;
  const std::optional<std::string> string = TakeLiteral(&text);
  if (!string || string->empty() || !TakeSpace(&text)) return std::nullopt;
  const std::optional<uint32_t> bytes = TakeNumber(&text);
  if (bytes != string->size() || !text.empty()) return std::nullopt;
  return Line{*id, *string};
}

Vocabulary LongestOf() {
  Vocabulary vocabulary;
  vocabulary.kind = format::TokenizerKind::Longest;
  vocabulary.decoder.has_steps = true;  // of which there are none: tokens are text
  return vocabulary;
}

AddedToken Special(const std::string& content, uint32_t id) {
  AddedToken token;
  token.content = content;
  token.id = id;
  token.special = true;
  token.normalized = false;
  return token;
}

}  // namespace

Vocabulary ReadRwkv(const std::string& path) {
  Vocabulary vocabulary = LongestOf();
  const std::string text = ReadFile(path, kMaxFileBytes);
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view read = std::string_view(text).substr(begin, end - begin);
    if (!read.empty() && read.back() == '\r') read.remove_suffix(1);
    begin = end + 1;
    if (read.empty()) continue;
    const std::string where = path + ": line " + std::to_string(number);
    const std::optional<Line> line = ReadLine(read);
    if (!line) Fail(where, ": \"", read, "\", an id, a string of Python and its number of bytes expected");
    if (line->id == 0) Fail(where, ": id 0 ends a text and has no string");
    if (!vocabulary.ids.insert({line->string, line->id}).second) Fail(where, ": the string is there twice");
  }
  if (vocabulary.ids.empty()) Fail(path, ": it has no tokens");
  vocabulary.added.Add(Special("<|endoftext|>", 0), path);
  return vocabulary;
}

Vocabulary ReadCharacters(const std::string& path) {
  Vocabulary vocabulary = LongestOf();
  const Json list = ParseJson(ReadFile(path, kMaxFileBytes), path);
  if (!list.is_array() || list.empty()) Fail(path, ": a list of characters expected");
  for (const Json& entry : list) {
    const auto id = static_cast<uint32_t>(vocabulary.ids.size() + vocabulary.added.size());
    const std::string where = path + "[" + std::to_string(id) + "]";
    const std::string character = entry.is_string() ? entry.get<std::string>() : "";
    if (character == kUnknown && vocabulary.added.empty()) {
      vocabulary.added.Add(Special(kUnknown, id), path);
      vocabulary.unk_token = kUnknown;
      continue;
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(character.data());
    if (character.empty() || DecodeCodePoint(bytes, bytes + character.size()).bytes != character.size()) {
      Fail(where, ": ", ValueText(entry), ", one character expected, or \"", kUnknown, "\"");
    }
    if (!vocabulary.ids.insert({character, id}).second) Fail(where, ": ", ValueText(entry), " is there twice");
  }
  return vocabulary;
}

}  // namespace tarn::convert
