// Normalizers against the `tokenizers` package (normalize_cases.json, made by tools/dev/text_cases.py), and against damaged tables.
#include "runtime/text/normalize.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/text/pcg32.h"
#include "tests/text/text_cases.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/charsmap.h"
#include "tools/convert/tokenizer/normalize.h"
#include "tools/convert/tokenizer/normalizer.h"

namespace tarn {
namespace {

using Kind = convert::NormalizerStep::Kind;
using Steps = std::vector<convert::NormalizerStep>;
using Words = std::vector<uint16_t>;

Span<const uint16_t> View(const Words& words) { return {words.data(), words.size()}; }
Span<const char> View(const std::string& text) { return {text.data(), text.size()}; }

struct Normalized {
  std::string text;
  std::vector<size_t> ranges;  // begin and end of each byte
  bool operator==(const Normalized& other) const { return text == other.text && ranges == other.ranges; }
};

// With a buffer of `buffer_bytes` for each piece, in exactly the memory that it asks for.
Normalized Normalize(const Normalizer& normalizer, const std::string& text, size_t buffer_bytes) {
  std::vector<uint32_t> working(normalizer.working_words());
  NormalizedText reader(normalizer, View(text), {working.data(), working.size()});
  std::vector<char> bytes(buffer_bytes);
  std::vector<TextRange> origins(buffer_bytes);
  Normalized result;
  while (const size_t size = reader.Read({bytes.data(), bytes.size()}, {origins.data(), origins.size()})) {
    EXPECT_LE(size, buffer_bytes);
    result.text.append(bytes.data(), size);
    for (size_t i = 0; i < size; ++i) {
      result.ranges.push_back(origins[i].begin);
      result.ranges.push_back(origins[i].end);
    }
  }
  return result;
}

Normalized Normalize(const Steps& steps, const std::string& text) {
  const Words words = convert::CompileNormalizer(steps, "test");
  const Result<Normalizer> normalizer = Normalizer::Open(View(words));
  EXPECT_TRUE(normalizer.ok()) << normalizer.status().message();
  return Normalize(normalizer.value(), text, 64);
}

convert::NormalizerStep AllSpaces() {
  convert::NormalizerStep step{Kind::kStrip};
  step.left = step.right = true;
  return step;
}

Steps StepsOf(const nlohmann::json& names) {
  static const std::map<std::string, Kind> kinds = {{"NFC", Kind::kNfc},
                                                    {"NFD", Kind::kNfd},
                                                    {"NFKC", Kind::kNfkc},
                                                    {"NFKD", Kind::kNfkd},
                                                    {"Lowercase", Kind::kLowercase},
                                                    {"StripAccents", Kind::kStripAccents},
                                                    {"Prepend", Kind::kPrepend},
                                                    {"Replace", Kind::kReplace}};
  Steps steps;
  for (const auto& name : names) {
    if (name.is_string()) {
      steps.push_back({kinds.at(name)});
    } else {
      steps.push_back({kinds.at(name[0]), name[1], name.size() > 2 ? name[2].get<std::string>() : ""});
    }
  }
  return steps;
}

// The package's ranges are those of characters.
Normalized Expected(const nlohmann::json& item) {
  Normalized expected;
  expected.text = item[1];
  size_t character = 0;
  for (size_t i = 0; i < expected.text.size(); ++i) {
    character += i > 0 && (static_cast<uint8_t>(expected.text[i]) & 0xC0) != 0x80 ? 1 : 0;
    expected.ranges.push_back(item[2][2 * character]);
    expected.ranges.push_back(item[2][2 * character + 1]);
  }
  return expected;
}

TEST(NormalizeTest, AsThePackage) {
  size_t texts = 0;
  for (const auto& row : TextCases("normalize_cases.json")) {
    convert::TokenizerData data;
    if (row.contains("normalizer")) convert::ReadNormalizer(row["normalizer"], "test", &data);
    const Words words = row.contains("steps") ? convert::CompileNormalizer(StepsOf(row["steps"]), "test") : data.normalizer;
    const Normalizer normalizer = Normalizer::Open(View(words)).value();
    for (const auto& item : row["cases"]) {
      const std::string text = item[0];
      const Normalized expected = Expected(item);
      for (const size_t buffer_bytes : {4u, 7u, 1000u}) {
        ASSERT_TRUE(Normalize(normalizer, text, buffer_bytes) == expected) << row.begin().value() << " " << item;
      }
      const size_t unchanged = normalizer.UnchangedPrefix(View(text));
      ASSERT_EQ(text.substr(0, unchanged), expected.text.substr(0, unchanged)) << row.begin().value() << " " << item;
      ++texts;
    }
  }
  EXPECT_GE(texts, 800u);
}

TEST(NormalizeTest, NormalizedTextIsSeenAtOnce) {
  const Words words = convert::CompileNormalizer({{Kind::kNfc}}, "test");
  const Normalizer nfc = Normalizer::Open(View(words)).value();
  for (const std::string& text : {std::string(), std::string("plain"), std::string("h\xC3\xA9, \xEA\xB0\x80 \xE1\xBA\xA1x"),
                                  std::string("\xD7\x91\xD6\xB4\xD6\xBC"), std::string("z\xCC\x96\xCC\x9A\xFF")}) {
    EXPECT_EQ(nfc.UnchangedPrefix(View(text)), text.size()) << text;
  }
  // The letter before a mark may change with it; what follows may be a mark.
  EXPECT_EQ(nfc.UnchangedPrefix(View("abcde\xCC\x81")), 4u);
  EXPECT_EQ(nfc.UnchangedPrefix(View("abcde"), false), 4u);
  EXPECT_EQ(Normalizer().UnchangedPrefix(View("e\xCC\x81")), 3u);
}

TEST(NormalizeTest, BytesThatAreNoCharacterStay) {
  const std::string text =
      "e\xFF\xCC\x81\xC3"
      "A\xE2\x82";
  const Normalized result = Normalize({{Kind::kNfkc}, {Kind::kLowercase}}, text);
  EXPECT_EQ(result.text,
            "e\xFF\xCC\x81\xC3"
            "a\xE2\x82");
  EXPECT_EQ(result.ranges, (std::vector<size_t>{0, 1, 1, 2, 2, 4, 2, 4, 4, 5, 5, 6, 6, 7, 7, 8}));
}

TEST(NormalizeTest, ManyMarksTakeBoundedMemory) {
  // In order of their classes: dots below (220) before accents (230). Beyond kMaxFormRun, in groups.
  std::string marks, below, above;
  for (size_t i = 0; i < kMaxFormRun / 2 - 1; ++i) {
    marks += "\xCC\x81\xCC\xA3";
    above += "\xCC\x81";
    below += "\xCC\xA3";
  }
  EXPECT_EQ(Normalize({{Kind::kNfd}}, "q" + marks + "z").text, "q" + below + above + "z");
  std::string many;
  for (int i = 0; i < 100; ++i) many += marks;
  for (const Kind form : {Kind::kNfc, Kind::kNfd, Kind::kNfkc, Kind::kNfkd}) {
    const Normalized result = Normalize({{form}}, "q" + many + "\xCC\x80z");
    EXPECT_EQ(result.text.size(), many.size() + 4);
    EXPECT_EQ(result.ranges.size(), 2 * result.text.size());
    EXPECT_EQ(result.ranges.back(), many.size() + 4);
  }
}

TEST(NormalizeTest, OpenRefusesDamagedTables) {
  const Words good = convert::CompileNormalizer({{Kind::kNfc}, {Kind::kReplace, "a", "b"}}, "test");
  const size_t roots = kNormalHeaderWords + 2 * kNormalStepWords;
  const struct {
    size_t word;
    uint16_t value;
    const char* message;
  } cases[] = {
      {0, 7, "version 7"},
      {1, 17, "17 steps"},
      {2, 0, "0 leaves"},
      {3, 257, "257 classes"},
      {4, static_cast<uint16_t>(good[4] + 1), "header does not say"},
      {9, 0xFFFF, "beyond"},
      {kNormalHeaderWords, 77, "step 0 has kind 77"},
      {kNormalHeaderWords, static_cast<uint16_t>(NormalStepKind::kReplaceMatches), "step 0: pattern: it has 0 words"},
      {kNormalHeaderWords + kNormalStepWords + 1, 0xFFFF, "step 1 has texts"},
      {kNormalHeaderWords + kNormalStepWords, static_cast<uint16_t>(NormalStepKind::kCharsMap),
       "step 1 has a pattern of 65536 words, 0 are left"},
      {kNormalHeaderWords + kNormalStepWords + 2, 0, "looks for an empty text"},
      {roots + 9, good[2], "root 9"},
      {roots + kNormalRoots, 0xFFFF, "class 0"},
      {roots + kNormalRoots + good[2] * kNormalLeaf / 2 + good[3] + 4, 500, "canonical mapping 0"},
      {good.size() - 1, 0x11, "no code point"},
  };
  for (const auto& item : cases) {
    Words words = good;
    words[item.word] = item.value;
    const Result<Normalizer> normalizer = Normalizer::Open(View(words));
    ASSERT_FALSE(normalizer.ok()) << item.message;
    EXPECT_NE(std::string(normalizer.status().message()).find(item.message), std::string::npos) << normalizer.status().message();
  }
  Words bytes = convert::CompileNormalizer({{Kind::kBytes}}, "test");
  bytes[kNormalHeaderWords + 1] = 1;
  EXPECT_STREQ(Normalizer::Open(View(bytes)).status().message(),
               "normalizer: step 0 has texts 1 + 256 of 256, at most 256 of them");
  for (const size_t size : {size_t{0}, size_t{9}, size_t{500}, good.size() - 1}) {
    EXPECT_EQ(Normalizer::Open(View(good).subspan(0, size)).status().code(), TARN_BAD_FORMAT) << size;
  }
}

// Whatever Open() lets pass may be run: ranges lie in the text. The sanitizers see that reads and writes stay in bounds.
TEST(NormalizeTest, StepsThatMultiplyATextAreRefused) {
  const std::string many(32, 'a');
  const Words two = convert::CompileNormalizer({{Kind::kReplace, "a", many}, {Kind::kReplace, "a", many}}, "test");
  EXPECT_TRUE(Normalizer::Open({two.data(), two.size()}).ok());
  try {
    convert::CompileNormalizer({{Kind::kReplace, "a", many}, {Kind::kReplace, "a", many}, {Kind::kReplace, "a", many}}, "test");
    ADD_FAILURE() << "three are taken";
  } catch (const convert::ConvertError& error) {
    EXPECT_NE(std::string(error.what()).find("test: normalizer: up to step 2 it may make a text"), std::string::npos)
        << error.what();
  }
  Words three = convert::CompileNormalizer({{Kind::kReplace, "a", many}, {Kind::kReplace, "a", many}, {Kind::kLowercase}}, "test");
  const size_t step = kNormalHeaderWords + 2 * kNormalStepWords;
  three[step] = static_cast<uint16_t>(NormalStepKind::kPrepend);
  three[step + 2] = 32;  // characters
  const auto opened = Normalizer::Open({three.data(), three.size()});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(std::string(opened.status().message()).find("up to step 2 it may make a text"), std::string::npos);
  const Words usual = convert::CompileNormalizer({{Kind::kNfkd}, {Kind::kStripAccents}, {Kind::kLowercase}}, "test");
  EXPECT_TRUE(Normalizer::Open({usual.data(), usual.size()}).ok());
}

// "a" becomes nothing, "b" three characters.
const std::string& SmallCharsMap() {
  static const std::string* const bytes = [] {
    std::vector<uint32_t> units(256);
    units[0] = 1 << 10;                    // base 1: "a" leads to 0x60, "b" to 0x63
    units[0x60] = 'a' | 1 << 8 | 2 << 10;  // base 0x62
    units[0x62] = uint32_t{1} << 31 | 3;   // the empty text
    units[0x63] = 'b' | 1 << 8 | 4 << 10;  // base 0x67
    units[0x67] = uint32_t{1} << 31 | 0;
    auto* made = new std::string(4 + 4 * units.size(), '\0');
    const auto size = static_cast<uint32_t>(4 * units.size());
    std::memcpy(made->data(), &size, 4);
    std::memcpy(made->data() + 4, units.data(), size);
    made->append("xyz\0", 4);
    return made;
  }();
  return *bytes;
}

convert::NormalizerStep CharsMapOf(const Words& words) {
  convert::NormalizerStep step{Kind::kCharsMap};
  step.charsmap = words;
  return step;
}

void RunForeignTables(const Words& good) {
  const std::string text =
      "  Qe\xCC\x81\xCC\xA3 \xEF\xB7\xBA\xEF\xB7\xBA\xEA\xB0\x81\xE1\x84\x80\xE1\x85\xA1 \xC4\xB0   "
      "abABab\xFF\xC2\xBD  ";
  Pcg32 random(3);
  size_t run = 0;
  for (int round = 0; round < 2000; ++round) {
    Words words = good;
    const size_t classes = kNormalHeaderWords + good[1] * kNormalStepWords + kNormalRoots + good[2] * kNormalLeaf / 2;
    for (uint32_t count = 1 + random.Next() % 8; count > 0; --count) {
      const size_t begin = random.Next() % 2 == 0 ? kNormalHeaderWords : classes,
                   end = random.Next() % 2 == 0 ? words.size() : classes + good[3];
      words[begin + random.Next() % (end - begin)] =
          static_cast<uint16_t>(random.Next() % 2 == 0 ? random.Next() % 0x4000 : good[random.Next() % good.size()]);
    }
    const Result<Normalizer> normalizer = Normalizer::Open(View(words));
    if (!normalizer.ok()) continue;
    ++run;
    for (const size_t range : Normalize(normalizer.value(), text, 16).ranges) ASSERT_LE(range, text.size());
  }
  EXPECT_GT(run, 100u);
}

TEST(NormalizeTest, ForeignTablesStayInBounds) {
  RunForeignTables(convert::CompileNormalizer({{Kind::kNfkc}, {Kind::kLowercase}, {Kind::kReplace, "ab", "c\xCC\x81"}}, "test"));
  RunForeignTables(convert::CompileNormalizer(
      {{Kind::kReplaceMatches, " {2,}|ab", "-"}, {Kind::kSurroundMatches, "[a-c]", " "}, {Kind::kNfc}, AllSpaces()}, "test"));
  const Words charsmap = convert::CompileCharsMap(SmallCharsMap(), "test");
  RunForeignTables(convert::CompileNormalizer({CharsMapOf(charsmap), AllSpaces(), {Kind::kLowercase}}, "test"));
}

TEST(NormalizeTest, CharsMapsThatAreDamagedAreRefused) {
  const Words good = convert::CompileCharsMap(SmallCharsMap(), "test");
  EXPECT_EQ(Normalize({CharsMapOf(good)}, "aacba").text, "cxyz");
  const size_t texts = kCharsMapHeaderWords + 512;
  const struct {
    size_t word;
    uint16_t value;
    const char* message;
  } cases[] = {
      {0, 255, "255 units"},
      {1, 0x100, "16777472 units, a multiple of 256 up to 16777216"},
      {2, 9, "header does not say"},
      {kCharsMapHeaderWords + 1, 0x7000, "unit 0 leads to unit"},
      {kCharsMapHeaderWords + 2 * 0x62, 4, "the text of unit 96 begins at byte 4 of 4"},
      {texts, 0xFFFF, "byte 0 of its texts is not UTF-8"},
      {texts + 1, 'a' << 8 | 'a', "its 4 bytes of text do not end with a zero"},
  };
  for (const auto& item : cases) {
    Words words = good;
    words[item.word] = item.value;
    const Result<CharsMap> map = CharsMap::Open(View(words));
    ASSERT_FALSE(map.ok()) << item.message;
    EXPECT_NE(std::string(map.status().message()).find(item.message), std::string::npos) << map.status().message();
  }
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(CharsMap::Open(View(good).subspan(0, size)).ok()) << size;
  const std::string longer = SmallCharsMap().substr(0, 4 + 1024) + std::string(300, 'x');
  EXPECT_THROW(convert::CompileCharsMap(longer, "test"), convert::ConvertError);
  EXPECT_THROW(convert::CompileNormalizer({CharsMapOf(good), CharsMapOf(good)}, "test"), convert::ConvertError);
}

// Ranges follow what is gone at the beginning, as those of the package do, whatever the length of the text.
TEST(NormalizeTest, CharactersThatAreGoneAtTheBeginningShiftRanges) {
  const Steps steps = {CharsMapOf(convert::CompileCharsMap(SmallCharsMap(), "test"))};
  const std::string rest(5000, 'c');
  const Normalized result = Normalize(steps, std::string(kMaxFormRun, 'a') + rest);
  ASSERT_EQ(result.text, rest);
  for (size_t i = 0; i < rest.size(); ++i) ASSERT_EQ(result.ranges[2 * i], i);
  const Normalized more = Normalize(steps, std::string(100000, 'a') + "b" + std::string(100000, 'a') + rest);
  EXPECT_EQ(more.text, "xyz" + rest);
  for (const size_t range : more.ranges) EXPECT_LE(range, 205001u);
}

TEST(NormalizeTest, PatternsThatLookFarAheadAreRefused) {
  struct Case {
    const char* pattern;
    const char* message;
  };
  for (const Case& one : {Case{"a*", "matches the empty text"}, Case{"a*b|a", "more than 32 characters ahead"},
                          Case{"a{40}", "more than 32 characters ahead"}, Case{"a(?=b)|\\s+(?!\\S)", ""}}) {
    std::string message;
    try {
      convert::CompileNormalizer({{Kind::kReplaceMatches, one.pattern, "x"}}, "test");
    } catch (const convert::ConvertError& error) {
      message = error.what();
    }
    EXPECT_EQ(message.empty(), *one.message == 0) << one.pattern << ": " << message;
    EXPECT_NE(message.find(one.message), std::string::npos) << one.pattern << ": " << message;
  }
}

// However long the runs are, what waits is bounded.
TEST(NormalizeTest, LongRunsOfSpaces) {
  const std::string run(100000, ' ');
  EXPECT_EQ(Normalize({{Kind::kReplaceMatches, " {2,}", "_"}}, run + "a" + run).text, "_a_");
  EXPECT_EQ(Normalize({AllSpaces()}, run + "a" + run + "b" + run).text, "a" + run + "b");
  EXPECT_EQ(Normalize({AllSpaces()}, run).text, "");
}

}  // namespace
}  // namespace tarn
