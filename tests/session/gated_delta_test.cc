// What a model file may say of a linear state whose heads share keys, and of the rates of its decays.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/changed_model.h"
#include "variants/linear.h"

namespace tarn {
namespace {

using convert::Graph;

constexpr char kAttention[] = "layers.0.attn";
const std::string kConfig = test::ConfigText(R"({"system": "gated_deltanet"})", "none", test::kBlockOfKeys);

// The attributes of a layer: 4 heads that share `key_heads` of q and k, of which `kv_heads` have a state.
auto With(uint32_t kv_heads, uint32_t key_heads, Gate gate = Gate::kSoftplus) {
  return [=](Graph* graph) {
    test::FindOp(graph, kAttention).attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
      const format::Heads heads(4, kv_heads, 8, 12);
      format::LinearStateBuilder table(builder);
      table.add_heads(&heads);
      table.add_feature_map(static_cast<uint8_t>(FeatureMap::kIdentity));
      table.add_rule(static_cast<uint8_t>(WriteRule::kDelta));
      table.add_gate(static_cast<uint8_t>(gate));
      table.add_key_heads(key_heads);
      return table.Finish().Union();
    };
  };
}

TEST(LinearStateOp, RefusesHeadsThatCannotShareKeys) {
  EXPECT_TRUE(test::Opened(kConfig, With(4, 2)).ok());
  for (const uint32_t key_heads : {3u, 5u, 8u, 4294967295u}) test::ExpectRefused(kConfig, "a divisor of heads", With(4, key_heads));
  test::ExpectRefused(kConfig, "kv_heads as many as heads", With(2, 2));
  // Divisors, for which q and k are too wide or too narrow.
  for (const uint32_t key_heads : {0u, 1u, 4u}) test::ExpectRefused(kConfig, "q", With(4, key_heads));
}

TEST(LinearStateOp, RefusesGatesWithoutTheirLogitsAndRates) {
  test::ExpectRefused(kConfig, "gate", With(4, 2, Gate::kSoftplusVector));
  test::ExpectRefused(kConfig, "inputs", With(4, 2, Gate::kConstant));
  test::ExpectRefused(kConfig, "tensors", [](Graph* graph) { test::FindOp(graph, kAttention).tensors.clear(); });
  for (const uint32_t heads : {2u, 5u}) {
    test::ExpectRefused(kConfig, "rate",
                        [&](Graph* graph) { test::SetTensor(graph, test::FindOp(graph, kAttention).tensors[0], {heads}); });
  }
}

}  // namespace
}  // namespace tarn
