// What CompileNormalizer() refuses, and what its tables take. What normalizers do: tests/text/normalize_test.cc.
#include <gtest/gtest.h>

#include <string>

#include "tests/convert/convert_testing.h"
#include "tools/convert/tokenizer/normalize.h"

namespace tarn::convert {
namespace {

using Kind = NormalizerStep::Kind;

TEST(CompileNormalizer, NamesWhatItRefuses) {
  const auto compile = [](const std::vector<NormalizerStep>& steps) {
    return [steps] { CompileNormalizer(steps, "tokenizer.json"); };
  };
  EXPECT_TRUE(FailsWith(compile(std::vector<NormalizerStep>(17, {Kind::kNfc})), {"tokenizer.json: 17 normalizers", "at most 16"}));
  EXPECT_TRUE(FailsWith(compile({{Kind::kReplace, "", "a"}}), {"tokenizer.json: ", "empty"}));
  EXPECT_TRUE(FailsWith(compile({{Kind::kPrepend, std::string(33, 'a')}}), {"tokenizer.json: ", "33 characters", "at most 32"}));
  EXPECT_TRUE(FailsWith(compile({{Kind::kReplace, "a", "b\xFF"}}), {"tokenizer.json: ", "byte 1", "UTF-8"}));
}

TEST(CompileNormalizer, TablesHaveWhatTheStepsNeed) {
  const auto words = [](Kind kind) { return CompileNormalizer({{kind}}, "x").size(); };
  EXPECT_LT(words(Kind::kNfc) * 2, 80'000u);
  EXPECT_LT(words(Kind::kNfd), words(Kind::kNfc));
  EXPECT_LT(words(Kind::kNfc), words(Kind::kNfkc));
  EXPECT_LT(words(Kind::kNfkc) * 2, 160'000u);
  EXPECT_LT(CompileNormalizer({{Kind::kReplace, " ", "_"}}, "x").size(), 9'000u);
}

}  // namespace
}  // namespace tarn::convert
