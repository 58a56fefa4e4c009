// Compiled patterns against the `tokenizers` package (pattern_cases.json, made by tools/dev/text_cases.py), and against damaged
// tables.
#include "runtime/text/pattern.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/pattern_format.h"
#include "runtime/text/pattern_split.h"
#include "runtime/text/pcg32.h"
#include "tests/text/text_cases.h"
#include "tools/convert/tokenizer/pattern.h"

namespace tarn {
namespace {

using Pieces = std::vector<std::pair<size_t, size_t>>;
using Words = std::vector<uint16_t>;

Span<const uint16_t> View(const Words& words) { return {words.data(), words.size()}; }
Span<const char> View(const std::string& text) { return {text.data(), text.size()}; }

// `words` must outlive it.
Pattern Opened(const Words& words) {
  const Result<Pattern> pattern = Pattern::Open(View(words));
  EXPECT_TRUE(pattern.ok()) << pattern.status().message();
  return pattern.value();
}

Pieces Split(const Pattern& pattern, SplitBehavior behavior, bool invert, const std::string& text) {
  Pieces pieces;
  Splitter splitter(pattern, behavior, invert, View(text));
  TextRange piece;
  while (splitter.Next(&piece) == ScanStatus::kFound) pieces.emplace_back(piece.begin, piece.end);
  EXPECT_EQ(splitter.Next(&piece), ScanStatus::kEnd);
  return pieces;
}

// The same with a byte more whenever one is asked for, and what is no longer needed thrown away.
Pieces SplitByBytes(const Pattern& pattern, SplitBehavior behavior, bool invert, const std::string& text) {
  Pieces pieces;
  std::string window;
  size_t dropped = 0, fed = 0;
  Splitter splitter(pattern, behavior, invert, View(window), false);
  for (;;) {
    TextRange piece;
    const ScanStatus status = splitter.Next(&piece);
    if (status == ScanStatus::kEnd) return pieces;
    if (status == ScanStatus::kFound) {
      pieces.emplace_back(dropped + piece.begin, dropped + piece.end);
      continue;
    }
    const size_t drop = splitter.needed();
    const bool is_whole = fed == text.size();
    window = window.substr(drop) + (is_whole ? "" : text.substr(fed++, 1));
    dropped += drop;
    splitter.Continue(View(window), drop, is_whole);
  }
}

Pieces Matches(const std::string& pattern, const std::string& text) {
  const Words words = convert::CompilePattern(pattern, "test");
  return Split(Opened(words), SplitBehavior::kRemoved, true, text);
}

TEST(PatternTest, SplitsAsThePackage) {
  const nlohmann::json rows = TextCases("pattern_cases.json");
  size_t texts = 0;
  for (const auto& row : rows) {
    const std::string regex = row["pattern"];
    const Words words = convert::CompilePattern(regex, "test");
    const Pattern pattern = Opened(words);
    for (const auto& item : row["cases"]) {
      const auto behavior = static_cast<SplitBehavior>(item[0].get<int>());
      const bool invert = item[1].get<int>() != 0;
      const std::string text = item[2];
      const Pieces expected = item[3];
      ASSERT_EQ(Split(pattern, behavior, invert, text), expected) << regex << " " << item;
      ASSERT_EQ(SplitByBytes(pattern, behavior, invert, text), expected) << regex << " " << item;
      ++texts;
    }
  }
  EXPECT_GE(texts, 800u);
}

TEST(PatternTest, BytesThatAreNoCharacterReadAsReplacementCharacters) {
  // A lone continuation byte, an overlong form, a surrogate, a code point that is too large, characters that are cut off.
  EXPECT_EQ(Matches(".", "\x80\xC0\xAF"), (Pieces{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(Matches("\\p{So}", "a\xED\xA0\x80"), (Pieces{{1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(Matches("\\x{FFFD}+", "\xF4\x90\x80\x80z\xEF\xBF\xBD\xE2\x82"), (Pieces{{0, 4}, {5, 10}}));
  EXPECT_EQ(Matches("\\p{L}+", "\xC3\xA9\xC3"), (Pieces{{0, 2}}));
  EXPECT_EQ(Matches("\\p{L}+", "\xE2\x82z"), (Pieces{{2, 3}}));
}

TEST(PatternTest, CharactersThatAreCutOffWaitForTheirRest) {
  const Words words = convert::CompilePattern("\\p{L}", "test");
  const std::string text = "\xC3\xA9";
  PatternScanner scanner(Opened(words), View(text).subspan(0, 1), false);
  TextRange match;
  ASSERT_EQ(scanner.Next(&match), ScanStatus::kMore);
  scanner.Continue(View(text), 0, true);
  ASSERT_EQ(scanner.Next(&match), ScanStatus::kFound);
  EXPECT_EQ(match.end, 2u);
}

TEST(PatternTest, EmptyMatchesCutAndHaveNoText) {
  EXPECT_EQ(Matches("x*", "axxb"), (Pieces{{1, 3}}));
  EXPECT_EQ(Matches("(?=b)", "ab"), Pieces());
  const Words words = convert::CompilePattern("(?=b)", "test");
  EXPECT_EQ(Split(Opened(words), SplitBehavior::kIsolated, false, "aabb"), (Pieces{{0, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(Split(Opened(words), SplitBehavior::kIsolated, false, ""), Pieces());
}

TEST(PatternTest, OpenRefusesDamagedTables) {
  const Words good = convert::CompilePattern("a\\p{L}", "test");
  const size_t leaves = kPatternHeaderWords + kPatternRoots, transitions = leaves + good[3] * kPatternLeaf / 2;
  const struct {
    size_t word;
    uint16_t value;
    const char* message;
  } cases[] = {
      {0, 9, "version 9"},
      {1, 1, "1 classes"},
      {1, 300, "300 classes"},
      {2, 1, "1 states"},
      {2, 60000, "60000 states"},
      {3, 0, "0 leaves"},
      {3, static_cast<uint16_t>(good[3] + 1), "its header says"},
      {kPatternHeaderWords, 1, "root 0"},
      {kPatternHeaderWords + 700, good[3], "root 700"},
      {leaves, 0x0100, "class 0"},
      {leaves + 1, static_cast<uint16_t>(good[1]), "class 2"},
      {transitions + 1, 2, "entry 1"},
      {transitions + good[1] + 1, static_cast<uint16_t>(good[1] * 2 + 2), "entry"},
      {transitions + good[1] + 1, static_cast<uint16_t>(good[1] * good[2] * 2), "entry"},
  };
  for (const auto& item : cases) {
    Words words = good;
    words[item.word] = item.value;
    const Result<Pattern> pattern = Pattern::Open(View(words));
    ASSERT_FALSE(pattern.ok()) << item.message;
    EXPECT_NE(std::string(pattern.status().message()).find(item.message), std::string::npos) << pattern.status().message();
  }
  for (const size_t size : {size_t{0}, size_t{3}, good.size() - 1}) {
    EXPECT_EQ(Pattern::Open(View(good).subspan(0, size)).status().code(), TARN_BAD_FORMAT) << size;
  }
}

// Whatever Open() lets pass may be run: matches lie in the text, in order. The sanitizers see that reads stay in the tables.
TEST(PatternTest, ForeignTablesStayInBounds) {
  const Words good = convert::CompilePattern("(?i:'s)| ?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+", "test");
  const std::string text = "He's 12345  m\xC3\xA9thodes\xFF\xF0\x9F\x98\x80 \xE2\x80\x83\n";
  Pcg32 random(1);
  size_t run = 0;
  for (int round = 0; round < 3000; ++round) {
    Words words = good;
    const size_t states = words.size() - size_t{words[1]} * words[2];
    for (uint32_t count = 1 + random.Next() % 3; count > 0; --count) {
      const size_t at = random.Next() % 2 == 0 ? random.Next() % words.size() : states + random.Next() % (words.size() - states);
      words[at] = static_cast<uint16_t>(random.Next() % 2 == 0 ? random.Next() : good[random.Next() % good.size()]);
    }
    const Result<Pattern> pattern = Pattern::Open(View(words));
    if (!pattern.ok()) continue;
    ++run;
    size_t end = 0;
    for (const auto& piece : Split(pattern.value(), SplitBehavior::kIsolated, false, text)) {
      ASSERT_EQ(piece.first, end);
      ASSERT_LT(piece.first, piece.second);
      end = piece.second;
    }
    ASSERT_EQ(end, text.size());
  }
  EXPECT_GT(run, 100u);
}

}  // namespace
}  // namespace tarn
