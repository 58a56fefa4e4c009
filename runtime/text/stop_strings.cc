#include "runtime/text/stop_strings.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/utf8.h"

namespace tarn {
namespace {

// Valid bytes come out of the decoder as they went in.
bool IsUtf8(Span<const char> text) {
  Utf8State state = {};
  char out[kMaxUtf8Bytes];
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t size = Utf8Feed(&state, static_cast<uint8_t>(text[i]), out);
    if (size > i + 1 || std::memcmp(out, text.data() + i + 1 - size, size) != 0) return false;
  }
  return Utf8Finish(&state, out) == 0;
}

}  // namespace

Status CheckStopStrings(Span<const StopString> strings) {
  if (strings.size() > kMostStopStrings) {
    return Error(TARN_INVALID_ARGUMENT, "stop_string_count is %zu, must be at most %zu", strings.size(), kMostStopStrings);
  }
  for (size_t i = 0; i < strings.size(); ++i) {
    const StopString& string = strings[i];
    if (string.text == nullptr) return Error(TARN_INVALID_ARGUMENT, "stop string %zu is NULL", i);
    if (string.text_bytes < 1 || string.text_bytes > kMostStopStringBytes) {
      return Error(TARN_INVALID_ARGUMENT, "stop string %zu has %zu bytes, must have 1 to %zu", i, string.text_bytes,
                   kMostStopStringBytes);
    }
    if (!IsUtf8({string.text, string.text_bytes})) {
      return Error(TARN_INVALID_ARGUMENT, "stop string %zu is not UTF-8, which the text always is", i);
    }
  }
  return Ok();
}

void StopFinder::TakeArrays(Bump* bump, Span<const StopString> strings, bool keep) {
  keep_ = keep;
  patterns_ = TakeArray<Pattern>(*bump, strings.size());
  for (size_t i = 0; i < strings.size(); ++i) {
    const size_t size = strings[i].text_bytes;
    longest_ = std::max(longest_, size);
    const Span<char> text = TakeArray<char>(*bump, size);
    const Span<uint32_t> borders = TakeArray<uint32_t>(*bump, size);
    if (patterns_.empty() || text.empty() || borders.empty()) continue;
    std::memcpy(text.data(), strings[i].text, size);
    patterns_[i].text = text;
    patterns_[i].borders = borders;
    patterns_[i].FindBorders();
  }
}

void StopFinder::Pattern::FindBorders() {
  borders[0] = 0;
  for (size_t i = 1; i < text.size(); ++i) borders[i] = Next(borders[i - 1], text[i]);
}

// The length of the longest begin of `text` that text[0..length) and `byte` end with; `length` is less than all of it.
uint32_t StopFinder::Pattern::Next(uint32_t length, char byte) const {
  while (length > 0 && text[length] != byte) length = borders[length - 1];
  return text[length] == byte ? length + 1 : 0;
}

size_t StopFinder::Feed(char byte, char* out) {
  if (found_ >= 0) return 0;
  const Pattern* before = holder_;
  const size_t size = held_ + 1;  // of the text that is not given out yet, with this byte
  size_t stop_size = 0;
  holder_ = nullptr;
  held_ = 0;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    Pattern& pattern = patterns_[i];
    pattern.matched = pattern.Next(pattern.matched, byte);
    if (pattern.matched == pattern.text.size() && pattern.matched > stop_size) {
      stop_size = pattern.matched;
      found_ = static_cast<int32_t>(i);
    }
    if (pattern.matched <= held_) continue;
    held_ = pattern.matched;
    holder_ = &pattern;
  }
  size_t given = size - held_;
  if (found_ >= 0) {
    given = keep_ ? size : size - stop_size;
    held_ = 0;
  }
  if (given == 0) return 0;
  const size_t from_before = std::min(given, size - 1);
  if (from_before > 0) std::memcpy(out, before->text.data(), from_before);
  if (given == size) out[size - 1] = byte;
  return given;
}

size_t StopFinder::Finish(char* out) {
  const size_t held = held_;
  if (held > 0) std::memcpy(out, holder_->text.data(), held);
  held_ = 0;
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return held;
}

void StopFinder::Save(uint8_t* state) const {
  const Progress progress = {holder_ == nullptr ? -1 : holder_ - patterns_.data(), held_, found_};
  std::memcpy(state, &progress, sizeof(progress));
  state += sizeof(progress);
  for (const Pattern& pattern : patterns_) {
    std::memcpy(state, &pattern.matched, sizeof(pattern.matched));
    state += sizeof(pattern.matched);
  }
}

void StopFinder::Restore(const uint8_t* state) {
  Progress progress;
  std::memcpy(&progress, state, sizeof(progress));
  holder_ = progress.holder < 0 ? nullptr : &patterns_[static_cast<size_t>(progress.holder)];
  held_ = static_cast<size_t>(progress.held);
  found_ = static_cast<int32_t>(progress.found);
  state += sizeof(progress);
  for (Pattern& pattern : patterns_) {
    std::memcpy(&pattern.matched, state, sizeof(pattern.matched));
    state += sizeof(pattern.matched);
  }
}

void StopFinder::Reset() {
  found_ = -1;
  held_ = 0;
  for (Pattern& pattern : patterns_) pattern.matched = 0;
}

}  // namespace tarn
