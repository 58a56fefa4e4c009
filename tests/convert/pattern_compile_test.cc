// What CompilePattern() refuses, and what its tables take. What the patterns match: tests/text/pattern_test.cc.
#include <gtest/gtest.h>

#include <string>

#include "tests/convert/convert_testing.h"
#include "tools/convert/tokenizer/pattern.h"

namespace tarn::convert {
namespace {

TEST(CompilePattern, NamesWhatItRefusesAndWhere) {
  const struct {
    const char* pattern;
    const char* message;
    const char* mark;  // where the pattern is shown to fail
  } cases[] = {
      {"a(?<=b)c", "lookbehind", "a >>> (?<=b)c"},
      {"(?<!b)", "lookbehind", " >>> (?<!b)"},
      {"(a)\\1", "\\1 is not supported", "(a) >>> \\1"},
      {"a|^b", "'^'", "a| >>> ^b"},
      {"\\bword", "\\b is not supported", " >>> \\bword"},
      {"x(?>ab)", "atomic groups", "x >>> (?>ab)"},
      {"ab++", "possessive", "ab >>> ++"},
      {"a{2}?", "{n}?", "a >>> {2}?"},
      {"a{3,2}", "smallest", "a >>> {3,2}"},
      {"a{1001}", "1000", "a >>> {1001}"},
      {"(?:a?)+", "can be empty", " >>> (?:a?)+"},
      {"(?=ab)c", "look-ahead of other than one character", " >>> (?=ab)c"},
      {"\\p{Klingon}", "'Klingon'", " >>> \\p{Klingon}"},
      {"\\pL", "'{'", " >>> \\pL"},
      {"[a-", "']'", " >>> [a-"},
      {"[b-a]", "backwards", "[ >>> b-a]"},
      {"[a-\\d]", "a range ends with a class", "[ >>> a-\\d]"},
      {"(a", "')'", " >>> (a"},
      {"a)b", "')'", "a >>> )b"},
      {"a|*", "a repeat of nothing", "a| >>> *"},
      {"(?i:ss)", "one character in another case", "(?i:s >>> s)"},
      {"(?i:[\\xDF-\\xE0])", "byte", ""},
      {"(?i:[\\x{DF}])", "two in another case", "(?i: >>> [\\x{DF}])"},
      {"a(?i)b", "in the middle", "a >>> (?i)b"},
      {"(?x) a", "this kind of group", " >>> (?x) a"},
      {"a\\", "behind '\\'", "a >>> \\"},
      {"\xC3(", "UTF-8", " >>> "},
  };
  for (const auto& item : cases) {
    EXPECT_TRUE(FailsWith([&] { CompilePattern(item.pattern, "tokenizer.json"); }, {"tokenizer.json: ", item.message, item.mark}))
        << item.pattern;
  }
}

TEST(CompilePattern, RefusesWhatIsTooLarge) {
  EXPECT_TRUE(FailsWith([] { CompilePattern("(?:a{1000}){1000}", "x"); }, {"x: ", "too large", "20000 steps"}));
  EXPECT_TRUE(FailsWith([] { CompilePattern("[ab]*a[ab]{15}c", "x"); }, {"x: ", "too large", "states"}));
  const std::string deep = std::string(70, '(') + "a" + std::string(70, ')');
  EXPECT_TRUE(FailsWith([&] { CompilePattern(deep, "x"); }, {"x: ", "64 levels"}));
  const std::string sets = std::string(40, '[') + "a" + std::string(40, ']');
  EXPECT_TRUE(FailsWith([&] { CompilePattern(sets, "x"); }, {"x: ", "32 levels"}));
  std::string classes;
  for (int i = 0; i < 300; ++i) classes += "\\x{" + std::to_string(1000 + i * 2) + "}" + std::to_string(i) + "|";
  EXPECT_TRUE(FailsWith([&] { CompilePattern(classes, "x"); }, {"x: ", "classes of characters"}));
}

std::string Times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// The tree is read by recursion: a long pattern must not make a deep one.
TEST(CompilePattern, RefusesRepeatsOfRepeatsWithoutEnd) {
  CompilePattern("a" + Times(64, "{1}"), "x");
  EXPECT_TRUE(
      FailsWith([] { CompilePattern("a" + Times(65, "{1}"), "x"); }, {"x: ", "at most 64 in a row expected", "{1} >>> {1}"}));
  EXPECT_TRUE(FailsWith([] { CompilePattern("a" + Times(50'000, "{1}"), "x"); }, {"x: ", "at most 64 in a row expected"}));
  CompilePattern(Times(63, "(?:") + "a" + Times(63, ")" + Times(64, "{1}")), "x");  // the deepest one
}

TEST(CompilePattern, ErrorsAreShort) {
  try {
    CompilePattern(std::string(100'000, 'a') + "(?<=b)" + std::string(100'000, 'a'), "x");
    ADD_FAILURE();
  } catch (const ConvertError& error) {
    EXPECT_LT(std::string(error.what()).size(), 300u) << error.what();
  }
}

TEST(CompilePattern, EscapesLiterals) {
  EXPECT_EQ(EscapePattern("a.b*\xC3\xA9-"), "a\\.b\\*\xC3\xA9\\-");
  EXPECT_EQ(CompilePattern(EscapePattern("(|)"), "x"), CompilePattern("\\x{28}\\x{7C}\\x29", "x"));
}

TEST(CompilePattern, EquivalentPatternsAreOneAutomaton) {
  EXPECT_EQ(CompilePattern("(?:a|b)c|[ab]d", "x"), CompilePattern("[ab][cd]", "x"));
  EXPECT_EQ(CompilePattern("a|a+?", "x"), CompilePattern("a", "x"));
  EXPECT_EQ(CompilePattern("(?:x|y|z)*", "x"), CompilePattern("[x-z]*", "x"));
}

}  // namespace
}  // namespace tarn::convert
