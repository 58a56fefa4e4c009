#include "runtime/platform/cpu_text.h"

#include <cstring>

namespace tarn {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Takes the digits at `*next`; false: there is none. Large numbers become UINT32_MAX.
bool TakeNumber(const char** next, const char* end, uint32_t* number) {
  if (*next == end || !IsDigit(**next)) return false;
  uint64_t value = 0;
  for (; *next != end && IsDigit(**next); ++*next) {
    value = value * 10 + static_cast<uint64_t>(**next - '0');
    if (value > UINT32_MAX) value = UINT32_MAX;
  }
  *number = static_cast<uint32_t>(value);
  return true;
}

// "3" or "0xd03", then the end.
bool ReadValue(const char* text, const char* end, uint32_t* value) {
  if (end - text > 2 && text[0] == '0' && text[1] == 'x') {
    uint64_t sum = 0;
    for (text += 2; text != end; ++text) {
      const char c = *text;
      const int digit = IsDigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) return false;
      sum = sum << 4 | static_cast<uint64_t>(digit);
      if (sum > UINT32_MAX) return false;
    }
    *value = static_cast<uint32_t>(sum);
    return true;
  }
  return TakeNumber(&text, end, value) && text == end;
}

// By the implementer and part number of the identification register.
bool IsLittlePart(uint32_t implementer, uint32_t part) {
  constexpr uint32_t kArm = 0x41, kQualcomm = 0x51;
  if (implementer == kQualcomm) return part == 0x801 || part == 0x803 || part == 0x805;  // silver Kryos that are A53 and A55
  if (implementer != kArm) return false;
  switch (part) {
    case 0xC05:  // Cortex-A5
    case 0xC07:  // Cortex-A7
    case 0xD01:  // Cortex-A32
    case 0xD03:  // Cortex-A53
    case 0xD04:  // Cortex-A35
    case 0xD05:  // Cortex-A55
    case 0xD46:  // Cortex-A510
    case 0xD80:  // Cortex-A520
      return true;
    default:
      return false;
  }
}

}  // namespace

uint32_t ProcessorSet::Next(uint32_t from) const {
  while (from < kMaxProcessors && !Has(from)) ++from;
  return from;
}

ProcessorSet ParseProcessorList(const char* text, size_t text_bytes) {
  const char* end = text + text_bytes;
  if (text_bytes > 0 && end[-1] == '\n') --end;
  ProcessorSet set;
  for (const char* next = text;; ++next) {
    uint32_t first = 0;
    if (!TakeNumber(&next, end, &first)) return {};
    uint32_t last = first;
    if (next != end && *next == '-') {
      ++next;
      if (!TakeNumber(&next, end, &last) || last < first) return {};
    }
    for (uint32_t i = first; i <= last && i < kMaxProcessors; ++i) set.Add(i);
    if (next == end) return set;
    if (*next != ',') return {};
  }
}

void CoreKinds::Feed(const char* text, size_t text_bytes) {
  for (size_t i = 0; i < text_bytes; ++i) {
    if (text[i] == '\n') {
      EndLine();
    } else if (line_bytes_ < kLineBytes) {
      line_[line_bytes_++] = text[i];
    }
  }
}

// "key : value"
void CoreKinds::EndLine() {
  const char* const end = line_ + line_bytes_;
  line_bytes_ = 0;
  const char* colon = static_cast<const char*>(std::memchr(line_, ':', static_cast<size_t>(end - line_)));
  if (colon == nullptr) return;
  const char* key_end = colon;
  while (key_end != line_ && IsBlank(key_end[-1])) --key_end;
  const char* value = colon + 1;
  while (value != end && IsBlank(*value)) ++value;
  const size_t key_bytes = static_cast<size_t>(key_end - line_);
  uint32_t number = 0;
  char key[24];
  if (key_bytes >= sizeof(key) || !ReadValue(value, end, &number)) return;
  std::memcpy(key, line_, key_bytes);
  key[key_bytes] = '\0';
  Describe(key, number);
}

void CoreKinds::Describe(const char* key, uint32_t value) {
  if (std::strcmp(key, "processor") == 0) {
    if (value >= kMaxProcessors) return;
    current_ = value;
    implementer_ = 0;
    if (first_ == kMaxProcessors) first_ = value;
  } else if (std::strcmp(key, "CPU implementer") == 0) {
    implementer_ = value;
  } else if (std::strcmp(key, "CPU part") == 0 && current_ < kMaxProcessors) {
    described_.Add(current_);
    if (IsLittlePart(implementer_, value)) little_.Add(current_);
  }
}

bool CoreKinds::IsLittle(uint32_t processor) const {
  uint32_t like = processor < kMaxProcessors ? processor : kMaxProcessors - 1;
  while (like > 0 && !described_.Has(like)) --like;
  if (!described_.Has(like)) like = described_.Next(processor);  // kernels before 3.8 describe the last one alone
  return little_.Has(like);
}

}  // namespace tarn
