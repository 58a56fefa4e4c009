#include "tools/convert/graph/precision.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/config/config.h"
#include "tools/convert/summary.h"

namespace tarn::convert {
namespace {

// Matrices of SmallConfig() with a head of its own; rows of 32, but for those of down_proj, which have 12.
std::vector<Matrix> Matrices(Precision rest, const std::vector<std::string>& rules, Json config = SmallConfig()) {
  config["hidden_size"] = 32;
  config["head_dim"] = config["value_head_dim"] = 8;
  config["tie_word_embeddings"] = false;
  PrecisionRules all(rest);
  for (const std::string& rule : rules) all.Keep(rule);
  GraphBuilder builder(all);
  BuildModel(ParseConfig(config.dump(), "config.json"), &builder);
  return builder.matrices();
}

std::map<std::string, Precision> ByName(Precision rest, const std::vector<std::string>& rules, Json config = SmallConfig()) {
  std::map<std::string, Precision> found;
  for (const Matrix& matrix : Matrices(rest, rules, std::move(config))) found[matrix.name] = matrix.precision;
  return found;
}

TEST(Precision, OneForAll) {
  for (const Precision precision : {Precision::kF32, Precision::kF16, Precision::kInt8}) {
    const auto found = ByName(precision, {});
    EXPECT_EQ(found.size(), 2u + 2 * 4);
    for (const auto& [name, each] : found) EXPECT_EQ(each, precision) << name;
  }
}

TEST(Precision, RulesForNamesOfTheFileAndOfTheCheckpoint) {
  const auto found = ByName(Precision::kInt4, {"*embeddings*=int8", "lm_head.weight=f32", "model.layers.1.*=f16",
                                               "model.layers.?.attn.g_proj.weight=f32"});
  EXPECT_EQ(found.at("model.embeddings.weight"), Precision::kInt8);
  EXPECT_EQ(found.at("lm_head.weight"), Precision::kF32);
  EXPECT_EQ(found.at("model.layers.0.attn.o_proj.weight"), Precision::kInt4);
  EXPECT_EQ(found.at("model.layers.1.attn.o_proj.weight"), Precision::kF16);
  EXPECT_EQ(found.at("model.layers.1.mlp.down_proj.weight"), Precision::kF16);
  // One tensor of the file: what holds for one of its projections holds for all.
  EXPECT_EQ(found.at("model.layers.0.attn.qkvg_proj.weight"), Precision::kF32);
}

TEST(Precision, ProjectionsOfLogitsAreNotBelowInt8UnlessARuleNamesThem) {
  Json config = SmallConfig();
  config["attention"] = {{"system", "abc_mlp"}, {"num_slots", 4}};
  const std::string control = "model.layers.0.attn.control_proj.weight";
  for (const Precision narrow : {Precision::kInt4, Precision::kInt3, Precision::kInt2}) {
    const auto found = ByName(narrow, {}, config);
    EXPECT_EQ(found.at(control), Precision::kInt8);
    EXPECT_EQ(found.at("model.layers.0.attn.qkv_proj.weight"), narrow);
    EXPECT_EQ(ByName(narrow, {"*control*=int4"}, config).at(control), Precision::kInt4);
  }
  EXPECT_EQ(ByName(Precision::kF16, {}, config).at(control), Precision::kF16);
  EXPECT_EQ(ByName(Precision::kInt4, {"*=int4", "*down_proj*=int8"}, config).at(control), Precision::kInt4);
  EXPECT_EQ(NarrowText(Matrices(Precision::kInt4, {"*down_proj*=int8"}, config)), "");  // as it is meant to be
  config["attention"] = {{"system", "gla"}, {"gate_low_rank", true}, {"gate_rank", 32}};
  const auto low_rank = ByName(Precision::kInt4, {}, config);
  EXPECT_EQ(low_rank.at("model.layers.0.attn.g_proj.0.weight"), Precision::kInt8);
  EXPECT_EQ(low_rank.at("model.layers.0.attn.g_proj.1.weight"), Precision::kInt8);
}

TEST(Precision, TheLastRuleHolds) {
  EXPECT_EQ(ByName(Precision::kInt8, {"*=f16", "*o_proj*=f32"}).at("model.layers.0.attn.o_proj.weight"), Precision::kF32);
  EXPECT_EQ(ByName(Precision::kInt8, {"*o_proj*=f32", "*=f16"}).at("model.layers.0.attn.o_proj.weight"), Precision::kF16);
}

TEST(Precision, RowsThatDoNotFillBlocksBecomeInt8) {
  const std::vector<Matrix> matrices = Matrices(Precision::kInt4, {"lm_head*=f16"});
  for (const Matrix& matrix : matrices) {
    const bool narrow = matrix.name.find("down_proj") != std::string::npos;
    EXPECT_EQ(matrix.wanted != matrix.precision, narrow) << matrix.name;
    EXPECT_TRUE(!narrow || matrix.precision == Precision::kInt8) << matrix.name;
  }
  EXPECT_EQ(
      NarrowText(matrices),
      "int8 instead of int4 for model.layers.0.mlp.down_proj.weight and 1 more: the length of their rows is no multiple of 32");
  EXPECT_EQ(PrecisionText(matrices, "int4"), "int4 (f16: lm_head.weight; int8: model.layers.0.mlp.down_proj.weight and 1 more)");
  EXPECT_EQ(NarrowText(Matrices(Precision::kInt8, {})), "");
  EXPECT_EQ(PrecisionText(Matrices(Precision::kF16, {}), "f16"), "f16");
}

TEST(Precision, Refusals) {
  EXPECT_TRUE(FailsWith([] { Matrices(Precision::kInt8, {"*.1.*down_proj*=int4"}); },
                        {"\"model.layers.1.mlp.down_proj.weight\"", "rows of 12", "32", "--keep", "=int8"}));
  EXPECT_TRUE(FailsWith(
      [] {
        Matrices(Precision::kInt8, {"*=f32", "*norm*=f16"});
      },
      {"--keep *norm*=f16: matches none", "model.embeddings.weight", "and 6 more"}));
  EXPECT_TRUE(FailsWith([] { PrecisionRules(Precision::kF32).Keep("lm_head"); }, {"lm_head", "PATTERN=TYPE"}));
  EXPECT_TRUE(FailsWith([] { PrecisionRules(Precision::kF32).Keep("=f16"); }, {"=f16", "PATTERN=TYPE"}));
  EXPECT_TRUE(FailsWith([] { PrecisionRules(Precision::kF32).Keep("a=b=int5"); }, {"int5", "f32, f16, int8, int4, int3 and int2"}));
}

}  // namespace
}  // namespace tarn::convert
