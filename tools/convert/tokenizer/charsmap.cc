#include "tools/convert/tokenizer/charsmap.h"

#include <algorithm>

#include "runtime/text/charsmap.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kUnitBytes = 4;

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < kUnitBytes; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
  return value;
}

void PutBytes(std::string_view bytes, std::vector<uint16_t>* words) {
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const uint32_t second = i + 1 < bytes.size() ? static_cast<uint8_t>(bytes[i + 1]) : 0;
    words->push_back(static_cast<uint16_t>(static_cast<uint8_t>(bytes[i]) | second << 8));
  }
}

}  // namespace

std::string DecodeBase64(std::string_view text, const std::string& where) {
  const size_t length = text.find_last_not_of('=') + 1, padding = text.size() - length;
  if (text.size() % 4 != 0 || padding > 2)
    Fail(where, ": ", text.size(), " characters with ", padding, " '=', which is not base64");
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < length; ++i) {
    const size_t value = kBase64.find(text[i]);
    if (value == std::string_view::npos) Fail(where, ": character ", i, " is not one of base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - i % 4 * 2));
  }
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(bytes.size() - i, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kBase64[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::vector<uint16_t> CompileCharsMap(std::string_view bytes, const std::string& where) {
  const std::string what = where + ": charsmap";
  if (bytes.size() < kUnitBytes) Fail(what, ": ", bytes.size(), " bytes, a size and a double array expected");
  const uint32_t array_bytes = LittleEndian(bytes);
  bytes.remove_prefix(kUnitBytes);
  if (array_bytes == 0 || array_bytes % kUnitBytes != 0 || array_bytes > bytes.size()) {
    Fail(what, ": a double array of ", array_bytes, " bytes, a multiple of 4 up to ", bytes.size(), " expected");
  }
  std::string array(bytes.substr(0, array_bytes)), texts(bytes.substr(array_bytes));
  constexpr size_t kBlockBytes = kCharsMapBlock * kUnitBytes;
  array.resize((array.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  if (texts.empty() || texts.back() != 0) texts += '\0';
  std::vector<uint16_t> words;
  for (const size_t size : {array.size() / kUnitBytes, texts.size()}) {
    words.push_back(static_cast<uint16_t>(size & 0xFFFF));
    words.push_back(static_cast<uint16_t>(size >> 16));
  }
  PutBytes(array, &words);
  PutBytes(texts, &words);
  const Result<CharsMap> opened = CharsMap::Open({words.data(), words.size()});  // as every reader will
  if (!opened.ok()) Fail(where, ": ", opened.status().message());
  return words;
}

}  // namespace tarn::convert
