#include "runtime/text/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/text/allocation_count.h"

namespace tarn {
namespace {

using Strings = std::vector<std::string>;

std::vector<StopString> Views(const Strings& strings) {
  std::vector<StopString> views;
  for (const std::string& string : strings) views.push_back({string.data(), string.size()});
  return views;
}

Span<const StopString> SpanOf(const std::vector<StopString>& views) { return {views.data(), views.size()}; }

// A finder with the memory that it lives in.
class Finder {
 public:
  explicit Finder(const Strings& strings, bool keep = false) {
    const std::vector<StopString> views = Views(strings);
    EXPECT_TRUE(CheckStopStrings(SpanOf(views)).ok());
    Bump measure;
    StopFinder().TakeArrays(&measure, SpanOf(views), keep);
    memory_.resize(measure.used() + kAlignment);
    uint8_t* begin = memory_.data() + (kAlignment - reinterpret_cast<uintptr_t>(memory_.data()) % kAlignment) % kAlignment;
    Bump bump({begin, static_cast<size_t>(measure.used())});
    finder_.TakeArrays(&bump, SpanOf(views), keep);
    out_.resize(finder_.max_bytes());
  }
  ~Finder() { Unpoison(memory_.data(), memory_.size()); }

  // The text that the bytes of `piece` give out.
  std::string Feed(const std::string& piece) {
    std::string text;
    for (const char byte : piece) text.append(out_.data(), Checked(finder_.Feed(byte, out_.data())));
    return text;
  }
  std::string Finish() { return {out_.data(), Checked(finder_.Finish(out_.data()))}; }
  StopFinder& get() { return finder_; }

 private:
  size_t Checked(size_t size) const {
    EXPECT_LE(size, finder_.max_bytes());
    return size;
  }

  std::vector<uint8_t> memory_;
  std::vector<char> out_;
  StopFinder finder_;
};

// The plain reference: looks at whole texts.
struct Reference {
  int32_t found = -1;
  size_t end = 0;  // of the text that is given out

  Reference(const Strings& strings, const std::string& text, bool keep) : end(text.size()) {
    for (size_t size = 1; size <= text.size() && found < 0; ++size) {
      size_t longest = 0;
      for (size_t i = 0; i < strings.size(); ++i) {
        const std::string& string = strings[i];
        if (string.size() <= longest || string.size() > size) continue;
        if (text.compare(size - string.size(), string.size(), string) != 0) continue;
        longest = string.size();
        found = static_cast<int32_t>(i);
        end = keep ? size : size - longest;
      }
    }
  }

  // How much of a text without stop string must wait: the longest end of it that begins a stop string.
  static size_t Held(const Strings& strings, const std::string& text) {
    size_t held = 0;
    for (const std::string& string : strings) {
      for (size_t size = 1; size < string.size() && size <= text.size(); ++size) {
        if (text.compare(text.size() - size, size, string, 0, size) == 0) held = std::max(held, size);
      }
    }
    return held;
  }
};

std::string RandomText(std::mt19937* random, size_t size, int letters) {
  std::string text(size, 'a');
  for (char& letter : text) letter = static_cast<char>('a' + static_cast<int>((*random)() % static_cast<unsigned>(letters)));
  return text;
}

TEST(StopStringsTest, AllSplitsOfRandomTextsAgreeWithTheReference) {
  std::mt19937 random(1);
  size_t stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    const int letters = 1 + round % 3;
    Strings strings;
    for (size_t i = 0; i <= random() % 4; ++i) strings.push_back(RandomText(&random, 1 + random() % 5, letters));
    const std::string text = RandomText(&random, random() % 11, letters);
    const bool keep = round % 2 == 1;
    const Reference expected(strings, text, keep);
    stopped += expected.found >= 0;
    Finder finder(strings, keep);
    // A bit for each place between two bytes: whether a piece ends there.
    const uint32_t splits = text.empty() ? 1 : 1u << (text.size() - 1);
    for (uint32_t split = 0; split < splits; ++split) {
      finder.get().Reset();
      std::string given, piece;
      for (size_t i = 0; i < text.size(); ++i) {
        piece += text[i];
        if ((split >> i & 1) == 0 && i + 1 < text.size()) continue;
        given += finder.Feed(piece);
        piece.clear();
        const std::string so_far = text.substr(0, i + 1);
        const Reference now(strings, so_far, keep);
        const size_t held = now.found >= 0 ? 0 : Reference::Held(strings, so_far);
        ASSERT_EQ(given, text.substr(0, now.end - held)) << text << " of " << so_far;
      }
      given += finder.Finish();
      ASSERT_EQ(given, text.substr(0, expected.end)) << text;
      ASSERT_EQ(finder.get().found(), expected.found) << text;
    }
  }
  EXPECT_GT(stopped, 1000u);
  EXPECT_LT(stopped, 2900u);
}

TEST(StopStringsTest, TheFirstThatIsCompleteAndOfTheseTheLongest) {
  Finder finder({"bc", "abcd", "xyz", "yz"});
  EXPECT_EQ(finder.Feed("1abcd"), "1a");
  EXPECT_EQ(finder.get().found(), 0);
  EXPECT_EQ(finder.Feed("more"), "");
  EXPECT_EQ(finder.Finish(), "");
  finder.get().Reset();
  EXPECT_EQ(finder.get().found(), -1);
  EXPECT_EQ(finder.Feed("1xyz"), "1");
  EXPECT_EQ(finder.get().found(), 2);
}

TEST(StopStringsTest, WithoutStopStringsNothingWaits) {
  Finder finder({});
  EXPECT_EQ(finder.Feed("abc"), "abc");
  EXPECT_EQ(finder.Finish(), "");
}

TEST(StopStringsTest, WhatIsHeldBackComesOutAtTheEnd) {
  Finder finder({"<|end|>"});
  EXPECT_EQ(finder.Feed("text <|en"), "text ");
  EXPECT_EQ(finder.Feed("try <|e"), "<|entry ");
  EXPECT_EQ(finder.Finish(), "<|e");
  EXPECT_EQ(finder.Feed("nd|>"), "nd|>");  // another text
}

TEST(StopStringsTest, LongOnesCostLinearTimeAndNoMemory) {
  const std::string stop = std::string(kMostStopStringBytes - 1, 'a') + 'b';
  Finder finder({stop, stop.substr(1)});
  const uint64_t before = AllocationCount();
  char out[kMostStopStringBytes];
  size_t given = 0;
  for (size_t i = 0; i < 3 * kMostStopStringBytes; ++i) given += finder.get().Feed('a', out);
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(given, 2 * kMostStopStringBytes + 1);
  EXPECT_EQ(finder.get().Feed('b', out), 0u);
  EXPECT_EQ(finder.get().found(), 0);
}

TEST(StopStringsTest, WhatCannotBeAStopString) {
  const auto message = [](const Strings& strings) {
    const std::vector<StopString> views = Views(strings);
    const Status status = CheckStopStrings(SpanOf(views));
    EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
    return std::string(status.message());
  };
  EXPECT_EQ(message({"a", ""}), "stop string 1 has 0 bytes, must have 1 to 65536");
  EXPECT_EQ(message({std::string(kMostStopStringBytes + 1, 'a')}), "stop string 0 has 65537 bytes, must have 1 to 65536");
  for (const char* bytes : {"\xFF", "a\xC3", "\xF0\x9F\x98", "\xED\xA0\x80", "\xC3(",
                            "\xF0\x9F\x98"
                            "a"}) {
    EXPECT_EQ(message({bytes}), "stop string 0 is not UTF-8, which the text always is");
  }
  EXPECT_EQ(message(Strings(257, "a")), "stop_string_count is 257, must be at most 256");
  const StopString none = {nullptr, 3};
  EXPECT_STREQ(CheckStopStrings({&none, 1}).message(), "stop string 0 is NULL");
  const Strings good = {"\xEF\xBF\xBD", "\xF0\x9F\x98\x80", "\xC3\xA9 a"};
  const std::vector<StopString> views = Views(good);
  EXPECT_TRUE(CheckStopStrings(SpanOf(views)).ok());
}

}  // namespace
}  // namespace tarn
