// The streaming decoder against a decoder that works the other way round: it looks at the whole text, computes code points
// arithmetically and judges those.
#include "runtime/text/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/text/pcg32.h"

namespace tarn {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

// Whether some completion of `prefix` (a lead and continuation bytes) to `length` bytes is a valid character.
bool CanBecomeCharacter(const std::string& prefix, size_t length) {
  static const uint32_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  static const uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t low = static_cast<uint8_t>(prefix[0]) & kLeadMask[length];
  uint32_t high = low;
  for (size_t i = 1; i < length; ++i) {
    low = low << 6 | (i < prefix.size() ? static_cast<uint8_t>(prefix[i]) & 0x3Fu : 0x00u);
    high = high << 6 | (i < prefix.size() ? static_cast<uint8_t>(prefix[i]) & 0x3Fu : 0x3Fu);
  }
  // The completions are all of [low, high]; the characters are [smallest, D7FF] and [E000, 10FFFF].
  low = std::max(low, kSmallest[length]);
  return low <= std::min(high, 0xD7FFu) || std::max(low, 0xE000u) <= std::min(high, 0x10FFFFu);
}

size_t LengthOf(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC0) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF8 ? 4 : 0;
}

std::string Expected(const std::string& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = LengthOf(static_cast<uint8_t>(bytes[i]));
    size_t taken = 0;
    while (taken < length && i + taken < bytes.size()) {
      const bool continues = taken == 0 || (static_cast<uint8_t>(bytes[i + taken]) & 0xC0) == 0x80;
      if (!continues || !CanBecomeCharacter(bytes.substr(i, taken + 1), length)) break;
      ++taken;
    }
    text += taken == length && length != 0 ? bytes.substr(i, length) : kReplacement;
    i += taken == 0 ? 1 : taken;
  }
  return text;
}

// Every byte of the output must come out with the byte that completes it; what is pending must be said.
std::string Decoded(const std::string& bytes) {
  Utf8State state = {};
  std::string text;
  for (const char byte : bytes) {
    char piece[kMaxUtf8Bytes];
    const size_t size = Utf8Feed(&state, static_cast<uint8_t>(byte), piece);
    EXPECT_LE(size, kMaxUtf8Bytes);
    EXPECT_LE(state.pending_bytes, kMaxUtf8Pending);
    EXPECT_TRUE(size != 0 || state.pending_bytes != 0) << "a byte was lost";
    text.append(piece, size);
  }
  char piece[kMaxUtf8Bytes];
  const uint32_t pending = state.pending_bytes;
  const size_t size = Utf8Finish(&state, piece);
  EXPECT_EQ(size, pending == 0 ? 0u : 3u);
  EXPECT_EQ(state.pending_bytes, 0u);
  return text.append(piece, size);
}

void Check(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) hex += ' ' + std::to_string(static_cast<uint8_t>(byte));
  ASSERT_EQ(Decoded(bytes), Expected(bytes)) << "bytes" << hex;
}

// Both sides of every boundary of table 3-7, and of the ranges that it leaves out.
const uint8_t kBoundaries[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                               0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF7, 0xF8, 0xFF};

TEST(Utf8Test, AllBoundariesOfOneToFourBytes) {
  std::vector<std::string> texts = {""};
  for (int length = 1; length <= 4; ++length) {
    std::vector<std::string> longer;
    // The fourth byte only tells continuation from other: a few are enough.
    for (const std::string& text : texts) {
      for (const uint8_t byte : kBoundaries) {
        if (length == 4 && byte != 0x41 && byte != 0x80 && byte != 0xBF && byte != 0xE0) continue;
        longer.push_back(text + static_cast<char>(byte));
        ASSERT_NO_FATAL_FAILURE(Check(longer.back()));
      }
    }
    texts = longer;
  }
}

TEST(Utf8Test, EveryCodePointPassesUnchanged) {
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x11000 ? 1 : 61) {
    if (code == 0xD800) code = 0xE000;
    std::string text;
    if (code < 0x80) {
      text = {static_cast<char>(code)};
    } else if (code < 0x800) {
      text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    } else if (code < 0x10000) {
      text = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
              static_cast<char>(0x80 | (code & 0x3F))};
    } else {
      text = {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
              static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
    }
    ASSERT_EQ(Decoded(text), text) << code;
  }
}

TEST(Utf8Test, MaximalSubparts) {
  // The examples of Unicode 3.9, tables 3-8 to 3-11; R stands for U+FFFD.
  const struct {
    const char* bytes;
    const char* text;
  } kCases[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "RRRRRRRRA"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "RRRRRRRRA"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "RRRRRARRB"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "RRRRA"},
  };
  for (const auto& item : kCases) {
    std::string expected;
    for (const char letter : std::string(item.text)) expected += letter == 'R' ? kReplacement : std::string(1, letter);
    EXPECT_EQ(Decoded(item.bytes), expected);
  }
}

TEST(Utf8Test, RandomBytes) {
  Pcg32 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (uint32_t length = random.Next() % 12; length > 0; --length) {
      // Half of them from the upper half, where the decisions are.
      bytes += static_cast<char>(random.Next() % 2 == 0 ? random.Next() % 256 : 0x80 + random.Next() % 128);
    }
    ASSERT_NO_FATAL_FAILURE(Check(bytes));
  }
}

TEST(Utf8Test, ForeignStateStaysInBounds) {
  // A caller's struct is not ours to trust: whatever it holds, writes stay within what is documented.
  Pcg32 random(2);
  for (int round = 0; round < 100000; ++round) {
    Utf8State state;
    for (uint8_t& byte : state.pending) byte = static_cast<uint8_t>(random.Next());
    state.pending_bytes = random.Next() % (kMaxUtf8Pending + 1);
    char piece[kMaxUtf8Bytes];
    ASSERT_LE(Utf8Feed(&state, static_cast<uint8_t>(random.Next()), piece), kMaxUtf8Bytes);
    ASSERT_LE(state.pending_bytes, kMaxUtf8Pending);
  }
}

}  // namespace
}  // namespace tarn
