// What a model file may say of a linear state: every number out of its bounds, every choice out of its list.
#include "runtime/ops/attention/linear/linear_attributes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

namespace tarn {
namespace {

using Change = std::function<void(format::LinearStateBuilder&)>;

// Of a table with that feature map, or with what `change` says.
Result<LinearAttributes> Read(const Change& change, std::optional<FeatureMap> map = FeatureMap::kIdentity) {
  flatbuffers::FlatBufferBuilder builder;
  const format::Heads heads(2, 1, 4, 4);
  format::LinearStateBuilder table(builder);
  table.add_heads(&heads);
  if (map) table.add_feature_map(static_cast<uint8_t>(*map));
  change(table);
  builder.Finish(table.Finish());
  return ReadLinearAttributes(*flatbuffers::GetRoot<format::LinearState>(builder.GetBufferPointer()));
}

void ExpectRefused(const char* name, const Change& change, std::optional<FeatureMap> map = FeatureMap::kIdentity) {
  const Result<LinearAttributes> read = Read(change, map);
  EXPECT_EQ(read.status().code(), TARN_BAD_FORMAT) << name;
  EXPECT_NE(std::string(read.status().message()).find(name), std::string::npos) << read.status().message();
}

TEST(LinearAttributes, TakesTheDefaults) {
  EXPECT_TRUE(Read([](format::LinearStateBuilder&) {}).ok());
}

TEST(LinearAttributes, RefusesNumbersOutOfBounds) {
#define TARN_CHECK_CHOICE(type, name, list, ...)                                                                 \
  ExpectRefused(                                                                                                 \
      #name, [](format::LinearStateBuilder& table) { table.add_##name(static_cast<uint8_t>(std::size(list))); }, \
      std::string(#name) == "feature_map" ? std::nullopt : std::optional(FeatureMap::kIdentity));
#define TARN_CHECK_NUMBER(name, fallback, bounds)                                                  \
  for (const float value : {NAN, INFINITY, -1.0f}) {                                               \
    if (IsWithin(bounds, value)) continue;                                                         \
    ExpectRefused(#name, [value](format::LinearStateBuilder& table) { table.add_##name(value); }); \
  }
#define TARN_IGNORE(...)
  TARN_LINEAR_ATTRIBUTES(TARN_CHECK_CHOICE, TARN_IGNORE, TARN_CHECK_NUMBER, TARN_IGNORE)
#undef TARN_CHECK_CHOICE
#undef TARN_CHECK_NUMBER
#undef TARN_IGNORE
  ExpectRefused("input_scale * q_input_scale", [](format::LinearStateBuilder& table) {
    table.add_input_scale(1e30f);
    table.add_q_input_scale(1e30f);
  });
}

TEST(LinearAttributes, RefusesSizesThatItsFeatureMapCannotHave) {
  for (const uint32_t count : {0u, (1u << 20) + 1}) {
    ExpectRefused(
        "num_features", [count](format::LinearStateBuilder& table) { table.add_num_features(count); }, FeatureMap::kArccos);
  }
  const auto with_nu = [](uint32_t nu) { return [nu](format::LinearStateBuilder& table) { table.add_nu(nu); }; };
  for (const uint32_t nu : {0u, 65u}) ExpectRefused("nu", with_nu(nu), FeatureMap::kDpfp);
  EXPECT_TRUE(Read(with_nu(64), FeatureMap::kDpfp).ok());
}

TEST(LinearAttributes, RefusesWhatCannotStandTogether) {
  for (const Gate gate : {Gate::kVector, Gate::kConstant, Gate::kSoftplus, Gate::kSoftplusVector}) {
    const auto gated = [gate](format::LinearStateBuilder& table) {
      table.add_rule(static_cast<uint8_t>(WriteRule::kDelta));
      table.add_gate(static_cast<uint8_t>(gate));
    };
    EXPECT_TRUE(Read(gated).ok());
    ExpectRefused("attention_normalized has no gate", [&](format::LinearStateBuilder& table) {
      gated(table);
      table.add_attention_normalized(true);
    });
  }
  for (const WriteRule rule : {WriteRule::kDelta, WriteRule::kReplace}) {
    for (const Gate gate : {Gate::kForget, Gate::kTied, Gate::kStep}) {
      ExpectRefused("no gate that says what is written", [=](format::LinearStateBuilder& table) {
        table.add_rule(static_cast<uint8_t>(rule));
        table.add_gate(static_cast<uint8_t>(gate));
      });
    }
  }
  ExpectRefused(
      "gate tied makes the keys", [](format::LinearStateBuilder& table) { table.add_gate(static_cast<uint8_t>(Gate::kTied)); },
      FeatureMap::kEluPlusOne);
  ExpectRefused("gate_bounds is for gate tied", [](format::LinearStateBuilder& table) { table.add_gate_bounds(true); });
  for (const float least : {0.0f, 1.0f, -kInfinity}) {
    ExpectRefused("finite gate_min below 0", [=](format::LinearStateBuilder& table) {
      table.add_gate(static_cast<uint8_t>(Gate::kSigmoidVector));
      table.add_gate_min(least);
    });
  }
  ExpectRefused("own_q_map", [](format::LinearStateBuilder& table) { table.add_own_q_map(true); });
  ExpectRefused(
      "an even num_features", [](format::LinearStateBuilder& table) { table.add_num_features(3); }, FeatureMap::kProduct);
  ExpectRefused("step_max", [](format::LinearStateBuilder& table) { table.add_step_max(0); });
  ExpectRefused("step_max", [](format::LinearStateBuilder& table) {
    table.add_step_min(2);
    table.add_step_max(1);
  });
  ExpectRefused("attention_normalized", [](format::LinearStateBuilder& table) { table.add_attention_normalized(true); });
  ExpectRefused("key_norm_sigma", [](format::LinearStateBuilder& table) { table.add_key_norm_sigma(true); });
  ExpectRefused("running maximum", [](format::LinearStateBuilder& table) {
    table.add_key_norm_weight(true);
    table.add_gate(static_cast<uint8_t>(Gate::kVector));
  });
}

}  // namespace
}  // namespace tarn
