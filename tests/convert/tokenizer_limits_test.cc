// Small files of tokenizers that would take much memory or time.
#include <gtest/gtest.h>

#include <string>

#include "tests/convert/convert_testing.h"
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

}  // namespace
}  // namespace tarn::convert
