// What a model file may say of a linear state: every number out of its bounds, every choice out of its list.
#include "runtime/ops/attention/linear/linear_attributes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <string>

namespace tarn {
namespace {

using Change = std::function<void(format::LinearStateBuilder&)>;

Result<LinearAttributes> Read(const Change& change) {
  flatbuffers::FlatBufferBuilder builder;
  const format::Heads heads(2, 1, 4, 4);
  format::LinearStateBuilder table(builder);
  table.add_heads(&heads);
  table.add_feature_map(static_cast<uint8_t>(FeatureMap::kIdentity));
  change(table);
  builder.Finish(table.Finish());
  return ReadLinearAttributes(*flatbuffers::GetRoot<format::LinearState>(builder.GetBufferPointer()));
}

void ExpectRefused(const char* name, const Change& change) {
  const Result<LinearAttributes> read = Read(change);
  EXPECT_EQ(read.status().code(), TARN_BAD_FORMAT) << name;
  EXPECT_NE(std::string(read.status().message()).find(name), std::string::npos) << read.status().message();
}

TEST(LinearAttributes, TakesTheDefaults) {
  EXPECT_TRUE(Read([](format::LinearStateBuilder&) {}).ok());
}

TEST(LinearAttributes, RefusesNumbersOutOfBounds) {
#define TARN_CHECK_CHOICE(type, name, list, ...) \
  ExpectRefused(#name, [](format::LinearStateBuilder& table) { table.add_##name(static_cast<uint8_t>(std::size(list))); });
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
  const auto map = [](FeatureMap which, const Change& more) {
    return [which, more](format::LinearStateBuilder& table) {
      table.add_feature_map(static_cast<uint8_t>(which));
      more(table);
    };
  };
  for (const uint32_t count : {0u, (1u << 20) + 1}) {
    ExpectRefused("num_features", map(FeatureMap::kArccos, [count](auto& table) { table.add_num_features(count); }));
  }
  for (const uint32_t nu : {0u, 65u}) ExpectRefused("nu", map(FeatureMap::kDpfp, [nu](auto& table) { table.add_nu(nu); }));
  EXPECT_TRUE(Read(map(FeatureMap::kDpfp, [](auto& table) { table.add_nu(64); })).ok());
}

TEST(LinearAttributes, RefusesWhatCannotStandTogether) {
  ExpectRefused("delta rule", [](format::LinearStateBuilder& table) {
    table.add_rule(static_cast<uint8_t>(WriteRule::kDelta));
    table.add_gate(static_cast<uint8_t>(Gate::kForget));
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
