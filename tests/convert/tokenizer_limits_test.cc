// Small files of tokenizers that would take much memory or time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "tests/convert/convert_testing.h"
#include "tools/convert/tokenizer/decoder.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {
namespace {

// Each word is a token: a, and b.
Json WordLevel() { return {{"model", {{"type", "WordLevel"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"unk_token", "b"}}}}; }

void ReadFile(const Json& file) {
  const TestFolder folder;
  folder.Write("tokenizer.json", file.dump());
  ReadTokenizer(folder.path(), 1000);
}

Json ReplaceStep(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

TEST(TokenizerLimits, DecodersDoNotMakeTokensLongWithoutEnd) {
  Json file = WordLevel();
  Json steps = Json::array();
  for (int i = 0; i < 40; ++i) steps.push_back(ReplaceStep("a", "aa"));
  file["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
  EXPECT_TRUE(FailsWith([&] { ReadFile(file); }, {"tokenizer.json: token 0 has ", " bytes, at most 4096 expected"}));
  file["decoder"] = ReplaceStep("a", std::string(1 << 20, 'c'));  // of a token of many
  file["model"]["vocab"] = {{std::string(10'000, 'a'), 0}, {"b", 1}};
  EXPECT_TRUE(FailsWith([&] { ReadFile(file); }, {"token 0 has 1058575 bytes, at most 4096 expected"}));
}

TEST(TokenizerLimits, TokensThatDecodersMakeShortMayBeLong) {
  Json file = WordLevel();
  std::string spaces;
  for (int i = 0; i < 4000; ++i) spaces += "\xE2\x96\x81";
  file["model"]["vocab"] = {{spaces, 0}, {"b", 1}};
  file["decoder"] = ReplaceStep("\xE2\x96\x81", " ");
  ReadFile(file);
}

// Removing one character after the other from a text of n bytes takes n^2 steps: minutes here.
TEST(TokenizerLimits, StripTakesTimeInProportionToATextAlone) {
  const Decoder decoder = ReadDecoder({{"type", "Strip"}, {"content", " "}, {"start", 16'000'000u}, {"stop", 16'000'000u}}, "x");
  const size_t bytes = 3'000'000;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Decode(decoder, std::string(bytes, ' ') + "a" + std::string(bytes, ' '), "x", 3 * bytes).later, "a");
  EXPECT_EQ(Decode(decoder, std::string(bytes, ' '), "x", 3 * bytes).later, "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(TokenizerLimits, StripCountsCharacters) {
  const auto strip = [](unsigned start, unsigned stop, const std::string& text) {
    const Decoder decoder = ReadDecoder({{"type", "Strip"}, {"content", "\xC3\xA9"}, {"start", start}, {"stop", stop}}, "x");
    return Decode(decoder, text, "x", 100).later;
  };
  const std::string two = "\xC3\xA9\xC3\xA9";
  EXPECT_EQ(strip(1, 0, two + "a" + two),
            "\xC3\xA9"
            "a" +
                two);
  EXPECT_EQ(strip(3, 1, two + "a" + two), "a\xC3\xA9");
  EXPECT_EQ(strip(1, 1, two), "");
  EXPECT_EQ(strip(1, 5, "\xC3\xA9\xC3"), "\xC3");
}

// A normalizer may make a text 4,096 times as long.
TEST(TokenizerLimits, AddedTokensAreShortBeforeAndBehindTheNormalizer) {
  Json file = WordLevel();
  file["normalizer"] = ReplaceStep("c", std::string(30, 'd'));
  const auto added = [&](size_t bytes) {
    file["added_tokens"] = Json::array({{{"id", 2u}, {"content", std::string(bytes, 'c')}, {"normalized", true}}});
  };
  added(400'000);
  EXPECT_TRUE(FailsWith([&] { ReadFile(file); }, {"added_tokens: added token \"ccc", "...: 400000 bytes, at most 1024 expected"}));
  added(1000);
  EXPECT_TRUE(FailsWith([&] { ReadFile(file); }, {"normalizer: added token \"ccc", "...: 30000 bytes, at most 1024 expected"}));
  file.erase("normalizer");
  ReadFile(file);
}

// Each takes time to compile: none behind the eighth is.
TEST(TokenizerLimits, SplitsBeyondTheEighthAreNotCompiled) {
  Json file = WordLevel();
  const auto split = [](const char* regex) {
    return Json{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
  };
  Json steps = Json::array();
  for (int i = 0; i < 8; ++i) steps.push_back(split("a"));
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  ReadFile(file);
  for (const Json& ninth : {split("("), Json{{"type", "UnicodeScripts"}}, Json{{"type", "BertPreTokenizer"}}}) {
    file["pre_tokenizer"]["pretokenizers"] = steps;
    file["pre_tokenizer"]["pretokenizers"].push_back(ninth);
    EXPECT_TRUE(FailsWith([&] { ReadFile(file); }, {"pre_tokenizer.pretokenizers[8]", ": split 9, at most 8 expected"})) << ninth;
  }
}

}  // namespace
}  // namespace tarn::convert
