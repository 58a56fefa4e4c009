#include "tools/convert/auto_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tools/convert/build/model_graph.h"
#include "tools/convert/config/config.h"
#include "tools/convert/writer/graph_buffer.h"

namespace tarn::convert {
namespace {

// Rows of 32, so that all may be int4.
constexpr char kConfig[] = R"({"vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64,
    "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "none", "tie_word_embeddings": false,
    "attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 4, "gate": "forget"}})";

// A loss that is the sum of what each group loses in its type.
class AutoPrecision : public ::testing::Test {
 protected:
  AutoPrecision() {
    model_.build = [this](Precision base, const GroupTypes& types) {
      PrecisionRules rules(base);
      for (const auto& [group, type] : types) rules.Prefer(group, type);
      for (const std::string& rule : keep_) rules.Keep(rule);
      auto builder = std::make_unique<GraphBuilder>(rules);
      BuildModel(ParseConfig(config_, "config.json"), builder.get());
      for (const Matrix& matrix : builder->matrices()) now_[GroupOf(matrix.name)] = matrix.precision;
      return builder;
    };
    model_.measure = [this](const Graph&, const std::string&) {
      ++measured_;
      double loss = 0;
      for (const auto& [group, type] : now_) {
        const auto cost = costs_.find(group);
        if (cost == costs_.end()) continue;
        if (type == Precision::kInt2) loss += 16 * cost->second;
        if (type == Precision::kInt3) loss += 4 * cost->second;
        if (type == Precision::kInt4) loss += cost->second;
        if (type == Precision::kInt8) loss += 0.1 * cost->second;
        if (type == Precision::kF16) loss += 0.001 * cost->second;
      }
      return loss;
    };
    model_.report = [this](const std::string& line) { lines_.push_back(line); };
  }

  std::map<std::string, double> costs_ = {
      {"model.embeddings.weight", 0.5}, {"model.layers.*.attn.qkvg_proj.weight", 1.0}, {"lm_head.weight", 0.25}};
  std::string config_ = kConfig;
  std::vector<std::string> keep_, lines_;
  std::map<std::string, Precision> now_;
  AutoModel model_;
  int measured_ = 0;
};

TEST_F(AutoPrecision, NamesOfGroups) {
  EXPECT_EQ(GroupOf("model.layers.12.attn.o_proj.weight"), "model.layers.*.attn.o_proj.weight");
  EXPECT_EQ(GroupOf("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(GroupOf("model.layers.3.mlp2.weight"), "model.layers.*.mlp2.weight");
}

TEST_F(AutoPrecision, TheNarrowestTypeIsEnough) {
  const AutoChoice choice = ChoosePrecision(model_, 100);
  EXPECT_EQ(choice.base, Precision::kInt2);
  EXPECT_TRUE(choice.types.empty());
  EXPECT_EQ(measured_, 3);  // int4, int3, int2
}

TEST_F(AutoPrecision, BetweenTwoNarrowTypes) {
  costs_ = {{"model.embeddings.weight", 0.5}, {"lm_head.weight", 0.25}};
  AutoChoice choice = ChoosePrecision(model_, 7);  // 12 in int2, 3 in int3; 2 + 4
  EXPECT_EQ(choice.base, Precision::kInt2);
  EXPECT_EQ(choice.types, (GroupTypes{{"model.embeddings.weight", Precision::kInt3}}));
  EXPECT_NEAR(choice.loss, 6, 1e-9);
  choice = ChoosePrecision(model_, 1.6);  // 3 in int3, 0.75 in int4; 0.5 + 1
  EXPECT_EQ(choice.base, Precision::kInt3);
  EXPECT_EQ(choice.types, (GroupTypes{{"model.embeddings.weight", Precision::kInt4}}));
}

TEST_F(AutoPrecision, TheMatrixThatLosesMostForItsBytesIsRaised) {
  costs_ = {{"model.embeddings.weight", 0.5}, {"lm_head.weight", 0.25}};
  AutoChoice choice = ChoosePrecision(model_, 0.31);  // 0.5 and 0.25 in int4; 0.05 and 0.25
  EXPECT_EQ(choice.types, (GroupTypes{{"model.embeddings.weight", Precision::kInt8}}));
  EXPECT_NEAR(choice.loss, 0.3, 1e-9);
  choice = ChoosePrecision(model_, 0.08);
  EXPECT_EQ(choice.types, (GroupTypes{{"model.embeddings.weight", Precision::kInt8}, {"lm_head.weight", Precision::kInt8}}));
  EXPECT_NE(lines_.back().find("loss +"), std::string::npos);
}

TEST_F(AutoPrecision, LargerTypesFollow) {
  costs_ = {{"model.embeddings.weight", 0.5}, {"lm_head.weight", 0.25}};
  const AutoChoice choice = ChoosePrecision(model_, 0.03);
  EXPECT_LE(choice.loss, 0.03);
  EXPECT_EQ(choice.types.at("model.embeddings.weight"), Precision::kF16);
  EXPECT_EQ(choice.types.at("lm_head.weight"), Precision::kInt8);
  EXPECT_EQ(ChoosePrecision(model_, 0).loss, 0);  // f32
}

TEST_F(AutoPrecision, WhatIsNotNeededGoesBack) {
  costs_ = {{"model.embeddings.weight", 0.5}};
  const AutoChoice choice = ChoosePrecision(model_, 0.06);
  EXPECT_EQ(choice.types, (GroupTypes{{"model.embeddings.weight", Precision::kInt8}}));
}

TEST_F(AutoPrecision, RowsThatAreNoBlocksStayInt8) {
  config_.replace(config_.find("\"intermediate_size\": 64"), 23, "\"intermediate_size\": 48");
  const AutoChoice choice = ChoosePrecision(model_, 6);
  EXPECT_EQ(choice.base, Precision::kInt3);
  EXPECT_LE(choice.loss, 6);
  EXPECT_EQ(choice.types.count("model.layers.*.mlp.down_proj.weight"), 0u);
  EXPECT_EQ(now_.at("model.layers.*.mlp.down_proj.weight"), Precision::kInt8);
}

TEST_F(AutoPrecision, RulesOfTheUserHold) {
  costs_ = {{"model.embeddings.weight", 0.5}, {"lm_head.weight", 0.25}};
  keep_ = {"model.embeddings.weight=int8"};
  const AutoChoice choice = ChoosePrecision(model_, 0.1);
  EXPECT_EQ(choice.types, (GroupTypes{{"lm_head.weight", Precision::kInt8}}));
  for (const std::string& line : lines_) EXPECT_EQ(line.find("embeddings"), std::string::npos) << line;
}

}  // namespace
}  // namespace tarn::convert
