// Properties of characters that changed from version to version, and sets of code points.
#include "tools/convert/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <vector>

namespace tarn::convert {
namespace {

using Ranges = std::vector<CodeSet::Range>;

bool Has(const char* property, uint32_t code, UnicodeVersion version = UnicodeVersion::k16) {
  return PropertySet(property, version)->Contains(code);
}

TEST(CodeSet, SetsOfRanges) {
  const CodeSet a = CodeSet(10, 20).Union(CodeSet(30, 40)), b = CodeSet(15, 35);
  EXPECT_EQ(a.ranges(), (Ranges{{10, 20}, {30, 40}}));
  EXPECT_EQ(a.Union(b).ranges(), (Ranges{{10, 40}}));
  EXPECT_EQ(a.Union(CodeSet(21, 29)).ranges(), (Ranges{{10, 40}}));
  EXPECT_EQ(a.Intersection(b).ranges(), (Ranges{{15, 20}, {30, 35}}));
  EXPECT_EQ(a.Complement().ranges(), (Ranges{{0, 9}, {21, 29}, {41, kMaxCodePoint}}));
  EXPECT_EQ(CodeSet().Complement().Complement(), CodeSet());
  for (const uint32_t code : {10u, 20u, 30u, 40u}) EXPECT_TRUE(a.Contains(code));
  for (const uint32_t code : {0u, 9u, 21u, 29u, 41u}) EXPECT_FALSE(a.Contains(code));
}

// As the pre-tokenizer UnicodeScripts of the package `tokenizers` cuts pairs of these characters.
TEST(ScriptSets, TellScriptsApart) {
  const std::vector<CodeSet> sets = ScriptSets();
  EXPECT_EQ(sets.size(), 135u);
  const auto set_of = [&](uint32_t code) {
    size_t found = sets.size();
    for (size_t i = 0; i < sets.size(); ++i) {
      if (!sets[i].Contains(code)) continue;
      EXPECT_EQ(found, sets.size()) << code << " is in two sets";
      found = i;
    }
    return found;
  };
  for (const uint32_t japanese : {0x3042u, 0x30ABu, 0x30FCu, 0x3005u}) EXPECT_EQ(set_of(japanese), set_of(0x4E00)) << japanese;
  EXPECT_EQ(set_of('a'), set_of(0xE9));
  EXPECT_EQ(set_of('\n'), set_of(','));
  EXPECT_NE(set_of('a'), set_of(0x3B1));
  EXPECT_NE(set_of(','), set_of(0x301));
  for (const uint32_t none : {0x20u, 0x378u, 0x860u}) EXPECT_EQ(set_of(none), sets.size()) << none;  // the last: of 10.0
}

TEST(PropertySet, VersionsDiffer) {
  // Assigned in 9.0 (Osage), 10.0 (a Mongolian letter), 16.0 (Garay), 17.0 (Sidetic).
  const struct {
    uint32_t code;
    UnicodeVersion first;
  } letters[] = {{0x104B0, UnicodeVersion::k9}, {0x10D50, UnicodeVersion::k16}, {0x10940, UnicodeVersion::k17}};
  for (const auto& letter : letters) {
    for (const UnicodeVersion version : {UnicodeVersion::k8, UnicodeVersion::k9, UnicodeVersion::k16, UnicodeVersion::k17}) {
      EXPECT_EQ(Has("L", letter.code, version), version >= letter.first) << letter.code;
      EXPECT_EQ(Has("Cn", letter.code, version), version < letter.first) << letter.code;
    }
  }
}

TEST(PropertySet, NamesAndGroups) {
  EXPECT_TRUE(Has("Lu", 'A') && Has("uppercase letter", 'A') && Has("Uppercase_Letter", 'A') && Has("L", 'A') && !Has("Ll", 'A'));
  EXPECT_TRUE(Has("N", 0xBD) && Has("No", 0xBD) && !Has("Digit", 0xBD) && Has("Nd", 0x0966));
  EXPECT_TRUE(Has("Han", 0x4E00) && !Has("Han", 'A') && Has("Alphabetic", 0x24B6) && !Has("L", 0x24B6));
  EXPECT_TRUE(Has("Space", 0x85) && Has("Space", 0x3000) && !Has("Space", 0x200B) && !Has("Space", 0x180E) && !Has("Space", 0x1C));
  EXPECT_FALSE(PropertySet("Lx", UnicodeVersion::k16));
  // Every code point has one category.
  CodeSet all;
  for (const char* group : {"L", "M", "N", "P", "S", "Z", "C"}) {
    const CodeSet set = *PropertySet(group, UnicodeVersion::k16);
    EXPECT_TRUE(all.Intersection(set).empty()) << group;
    all = all.Union(set);
  }
  EXPECT_EQ(all, CodeSet(0, kMaxCodePoint));
}

TEST(CaseClosure, TakesWhatFoldsAlike) {
  EXPECT_EQ(CaseClosure(CodeSet('s', 's')).ranges(), (Ranges{{'S', 'S'}, {'s', 's'}, {0x17F, 0x17F}}));
  EXPECT_EQ(CaseClosure(CodeSet(0x212A, 0x212A)).ranges(), (Ranges{{'K', 'K'}, {'k', 'k'}, {0x212A, 0x212A}}));
  EXPECT_EQ(CaseClosure(CodeSet('1', '1')).ranges(), (Ranges{{'1', '1'}}));
  EXPECT_EQ(FoldCase(0x3A3), 0x3C3u);
  EXPECT_EQ(FoldCase(0x3C2), 0x3C3u);
}

}  // namespace
}  // namespace tarn::convert
