// Attention objects that are refused, each with the field and the value that are to blame.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/attention/attention.h"

namespace tarn::convert {
namespace {

// 4 query heads on 2 kv heads, d 4, dv 3, in a model of width 20; and a kv head per query head with values as wide as keys.
const AttentionContext kContext = {format::Heads(4, 2, 4, 3), /*layer=*/0, /*hidden_size=*/20, false, false};
const AttentionContext kEqualHeads = {format::Heads(4, 4, 4, 4), /*layer=*/0, /*hidden_size=*/20, false, false};

void Parse(const std::string& text, const AttentionContext& context = kContext) {
  ParseAttention(Json::parse(text), "config.json: attention", context);
}

TEST(AttentionRefusals, NameFieldAndValue) {
  const struct {
    const char* text;
    std::vector<std::string> parts;
    const AttentionContext& context = kContext;
  } cases[] = {
      {R"({"system": "mamba"})", {"attention: system", "\"mamba\" is unknown"}},
      {R"({"system": "rfa_normfree", "num_features": 3, "normalize_qk": true})", {"normalize_qk", "true is not false"}},
      {R"({"system": "rfa_normfree", "num_features": 3, "key_norm_weight": false})", {"key_norm_weight", "false is not true"}},
      {R"({"system": "rfa_normfree", "num_features": 3, "gate": "forget"})", {"gate", "\"forget\" is not \"none\""}},
      {R"({"system": "linear_transformer", "feature_map": "relu"})", {"feature_map", "\"relu\" is not \"elu_plus_one\""}},
      {R"({"system": "linear_transformer", "num_features": 5})", {"num_features", "5 is not 4"}},
      {R"({"system": "linear_transformer", "den_mode": "clamp_min", "den_eps": 0})", {"den_eps", "above 0"}},
      {R"({"system": "performer_trig", "num_features": 3, "input_scale": 0})", {"input_scale", "0 must be above 0"}},
      {R"({"system": "performer_positive", "num_features": 3, "feature_eps": 1e-4})", {"feature_eps", "0.0001 is not 0"}},
      {R"({"system": "performer_relu", "ratio": -1})", {"ratio", "-1 must be above 0"}},
      {R"({"system": "performer_relu", "feature_eps": -1})", {"feature_eps", "negative"}},
      {R"({"system": "performer_relu", "projection": true})", {"\"num_features\" is missing"}},
      {R"({"system": "dpfp", "nu": 8})", {"nu", "8 is not below 2 head_dim = 8"}},
      {R"({"system": "dpfp", "nu": 65})", {"nu", "65 is outside 1 .. 64"}},
      {R"({"system": "dpfp", "nu": 1, "dpfp_variant": "own"})", {"dpfp_variant", "\"own\""}},
      {R"({"system": "linear_attention", "feature_map": "none"})",
       {"feature_map", "\"none\" is not one of gaussian, arccos, elu_plus"}},
      {R"({"system": "linear_attention", "feature_map": "arccos"})", {"\"num_features\" is missing"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "nu": 1})", {"\"nu\""}},
      {R"({"system": "linear_attention", "feature_map": "identity", "rule": "delta", "gate": "forget"})",
       {"rules delta and replace have no gate that says what is written"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "rule": "replace", "gate": "step"})",
       {"rules delta and replace have no gate that says what is written"}},
      {R"({"system": "linear_attention", "feature_map": "relu", "rule": "replace"})", {"rule", "feature_map \"identity\""}},
      {R"({"system": "linear_attention", "feature_map": "relu", "gate": "tied"})", {"gate tied makes the keys"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "gate": "sigmoid_vector", "gate_clamp_min": 0})",
       {"finite gate_min below 0"}},
      {R"({"system": "rwkv7", "gate_clamp_min": 0.5})", {"gate_clamp_min", "finite gate_min below 0"}},
      {R"({"system": "mamba2", "step_min": 2, "step_max": 1})", {"step_max", "1 is below step_min"}},
      {R"({"system": "mamba2", "step_max": 0})", {"step_max", "0 must be above 0"}},
      {R"({"system": "hgrn2", "lower_bounds": 1})", {"lower_bounds", "1"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "rule": "delta", "gate": "softplus",
           "attention_normalized": true})",
       {"attention_normalized has no gate"}},
      {R"({"system": "linear_attention", "feature_map": "positive", "num_features": 3, "gate": "forget"})", {"running maximum"}},
      {R"({"system": "linear_attention", "feature_map": "positive", "num_features": 3, "den_mode": "none"})",
       {"den_mode", "running maximum, which cancels"}},
      {R"({"system": "linear_attention", "feature_map": "relu", "key_norm_weight": true, "den_mode": "none"})",
       {"den_mode", "running maximum, which cancels"}},
      {R"({"system": "rfa_normfree", "num_features": 3, "den_mode": "none"})", {"den_mode", "running maximum, which cancels"}},
      {R"({"system": "linear_attention", "feature_map": "positive", "num_features": 3, "den_mode": "add", "sum_norm": true})",
       {"key_norm_weight or sum_norm: the features have weights"}},
      {R"({"system": "linear_attention", "feature_map": "positive", "num_features": 3, "feature_eps": 0.5})",
       {"feature_eps", "0.5 is not 0"}},
      {R"({"system": "linear_attention", "feature_map": "relu", "feature_eps": -1})", {"feature_eps", "negative"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "input_scale": 1e30, "q_input_scale": 1e30})",
       {"input_scale * q_input_scale is inf"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "rule": "delta", "beta_scale": 50})",
       {"beta_scale", "50 is above 2"}},
      {R"({"system": "linear_attention", "feature_map": "dpfp", "nu": 1, "negate_second": true, "sum_norm": true})",
       {"sum_norm", "both signs"}},
      {R"({"system": "linear_attention", "feature_map": "identity", "gate": "vector", "gate_clamp_min": 0.5})", {"0.5 is above 0"}},
      {R"({"system": "cache_attention", "policy": "none"})", {"policy", "\"none\" is not one of full, window, strided, l2g"}},
      {R"({"system": "cache_attention", "policy": "full"})", {"\"max_context\" is missing"}},
      {R"({"system": "cache_attention", "policy": "strided", "window": 6, "stride": 4})", {"\"num_strided\" is missing"}},
      {R"({"system": "cache_attention", "policy": "window", "window": 0})", {"window", "0 is outside 1 .. 16777216"}},
      {R"({"system": "cache_attention", "policy": "window", "window": 5000, "dilation": 5000})", {"25000000 rows", "16777216"}},
      {R"({"system": "cache_attention", "policy": "window", "window": 6, "stride": 4})", {"\"stride\""}},
      {R"({"system": "cache_attention", "policy": "pooled", "window": 6})",
       {"policy", "pooled has no causal form, only: noncausal"}},
      {R"({"system": "cache_attention", "policy": "memory_compressed", "compression_factor": 3, "max_context": 2})",
       {"no block would ever be complete"},
       kEqualHeads},
      {R"({"system": "cache_attention", "policy": "memory_compressed", "compression_factor": 3, "max_context": 9})",
       {"heads of the same width expected"}},
      {R"({"system": "delta_rule", "nu": 1, "feature_norm": "none"})", {"feature_norm", "\"none\" is not \"sum\""}},
      {R"({"system": "delta_rule", "nu": 1, "dpfp_variant": "fla"})", {"dpfp_variant", "\"fla\" is not \"paper\""}},
      {R"({"system": "delta_rule", "nu": 1, "feature_map": "relu"})", {"feature_map", "\"relu\" is not one of dpfp, elu_plus_one"}},
      {R"({"system": "delta_rule", "nu": 1, "sum_norm_eps": -1})", {"sum_norm_eps", "negative"}},
      {R"({"system": "delta_rule", "nu": 1, "den_eps": 0.5})", {"den_eps", "0.5 is not 0"}},
      {R"({"system": "delta_rule", "nu": 1, "attention_normalized": true, "den_eps": -1})", {"den_eps", "negative"}},
      {R"({"system": "deltanet", "beta_scale": 2.5})", {"beta_scale", "2.5 is above 2"}},
      {R"({"system": "deltanet", "beta_scale": 0})", {"beta_scale", "0 must be above 0"}},
      {R"({"system": "deltanet", "den_mode": "add"})", {"den_mode", "\"add\" is not \"none\""}},
      {R"({"system": "deltanet", "gate": "softplus"})", {"gate", "\"softplus\" is not \"none\""}},
      {R"({"system": "gated_deltanet", "gate": "vector"})", {"gate", "\"vector\" is not one of softplus, softplus_vector"}},
      {R"({"system": "gated_deltanet", "gate_low_rank": true})", {"gate_low_rank", "\"gate\" is \"softplus_vector\""}},
      {R"({"system": "gated_deltanet", "gate": "softplus_vector", "gate_low_rank": true, "gate_rank": 0})", {"gate_rank", "0"}},
      {R"({"system": "t2r", "num_features": 3, "q_input_scale": -1})", {"q_input_scale", "-1 must be above 0"}},
      {R"({"system": "gla", "gate_normalizer": 0})", {"gate_normalizer", "0 must be above 0"}},
      {R"({"system": "gla", "gate_clamp_min": 0.1})", {"gate_clamp_min", "0.1 is above 0"}},
      {R"({"system": "gla", "gate_clamp_min": "low"})", {"gate_clamp_min", "\"low\" is not a number"}},
      {R"({"system": "retnet"})", {"system", "\"retnet\"", "num_kv_heads = 2", "num_heads = 4"}},
      {R"({"system": "retnet", "decay": [0.5, 0.5, 0.5]})", {"decay", "list of num_heads = 4"}, kEqualHeads},
      {R"({"system": "retnet", "decay": [0.5, 0.5, 0.5, 1.5]})", {"decay", "1.5 is not above 0 and at most 1"}, kEqualHeads},
      {R"({"system": "retnet", "decay": [0.5, 0.5, 0, 1]})", {"decay", "0 is not above 0"}, kEqualHeads},
      {R"({"system": "retnet", "decay": [0.5, 0.5, "x", 1]})", {"decay", "\"x\" is not a number"}, kEqualHeads},
      {R"({"system": "short_conv"})", {"\"short_conv\" has q, k and v of one width", "value_head_dim"}},
      {R"({"system": "short_conv", "taps": 9})", {"taps", "9 is outside 2 .. 8"}, kEqualHeads},
      {R"({"system": "rg_lru"})", {"\"rg_lru\" has q, k and v of one width"}},
      {R"({"system": "rg_lru", "gate_blocks": 3})", {"gate_blocks", "3 does not divide the 16 columns"}, kEqualHeads},
      {R"({"system": "rg_lru", "rate_scale": 0})", {"rate_scale", "0 must be above 0"}, kEqualHeads},
      {R"({"system": "diagonal_recurrence"})", {"system", "num_kv_heads must be num_heads"}},
      {R"({"system": "diagonal_recurrence", "decay": "none"})",
       {"decay", "\"none\" is not one of sigmoid, exponential"},
       kEqualHeads},
      {R"({"system": "diagonal_recurrence", "input": "half"})",
       {"input", "\"half\" is not one of whole, complement, root"},
       kEqualHeads},
      {R"({"system": "diagonal_recurrence", "rate_scale": 2})", {"rate_scale", "\"decay\" is \"exponential\""}, kEqualHeads},
      {R"({"system": "linformer", "num_slots": 10, "max_len": 9})", {"num_slots", "10 slots", "max_len = 9"}},
      {R"({"system": "linformer", "num_slots": 5, "max_len": 9, "mask_empty": true})", {"mask_empty", "true is not false"}},
      {R"({"system": "linformer", "num_slots": 5, "max_len": 9, "own_value_control": 1})",
       {"own_value_control", "1 is not true or"}},
      {R"({"system": "gsa", "num_slots": 5, "own_value_control": true})", {"unknown field \"own_value_control\""}},
      {R"({"system": "abc_mlp", "num_slots": 5, "control_input": "keys"})",
       {"control_input", "\"keys\" is not one of layer, heads"}},
      {R"({"system": "compressive_mean", "num_slots": 10, "max_len": 9})", {"num_slots", "10 slots", "max_len = 9"}},
      {R"({"system": "abc_rd", "num_slots": 5, "seed": -1})", {"seed", "-1 is outside"}},
      {R"({"system": "l2g_global", "global_positions": []})", {"global_positions", "[] is not a list"}},
      {R"({"system": "l2g_global", "global_positions": 4})", {"global_positions", "4 is not a list"}},
      {R"({"system": "l2g_global", "global_positions": [4, 4]})", {"global_positions", "4 stands after 4: not ascending"}},
      {R"({"system": "l2g_global", "global_positions": [4, 3]})", {"global_positions", "3 stands after 4: not ascending"}},
      {R"({"system": "l2g_global", "global_positions": [-1]})", {"global_positions", "-1 is not an integer"}},
      {R"({"system": "l2g_global", "global_positions": [4294967296]})", {"global_positions", "4294967296 is not"}},
      {R"({"system": "gsa", "num_slots": 5, "gate_normalizer": -8})", {"gate_normalizer", "-8 must be above 0"}},
      {R"({"system": "slot_attention", "num_slots": 5})", {"\"control\" is missing"}},
      {R"({"system": "slot_attention", "control": "none", "num_slots": 5})", {"control", "is not one of abc_mlp, linformer"}},
      {R"({"system": "slot_attention", "control": "gsa", "num_slots": 5, "max_len": 9})", {"\"max_len\""}},
      {R"({"system": "slot_attention", "control": "gsa", "num_slots": 5, "mask_empty": true})", {"mask_empty"}},
      {R"({"system": "slot_attention", "control": "clustering", "num_slots": 5})", {"clustering has no causal form"}},
      {R"({"system": "luna_causal", "num_slots": 5, "activation": "exp"})", {"activation", "\"exp\" is not \"softplus2\""}},
      {R"({"system": "clustering_online", "num_slots": 5, "init": "random"})", {"init", "\"random\" is not \"first_n\""}},
      {R"({"system": "softmax", "max_context": 9, "distance_bias": "model", "distance_buckets": 1})",
       {"distance_buckets", "1 is outside 2 .. 4096"}},
      {R"({"system": "softmax", "max_context": 9, "distance_bias": "model", "distance_buckets": 8, "distance_max": 4})",
       {"distance_max", "4 is not above 4, the distances that have buckets of their own"}},
      {R"({"system": "softmax", "max_context": 9, "distance_slopes": [1]})", {"distance_slopes", "[1] is not a list of num_heads"}},
      {R"({"system": "sliding_window", "window": 3, "distance_slopes": "alibi"})", {"distance_slopes", "\"alibi\" is not a list"}},
      {R"({"system": "dilated_window", "window": 3, "dilation": 2, "distance_bias": "layer"})",
       {"unknown field \"distance_bias\""}},
      {R"({"system": "cache_attention", "policy": "window", "window": 3, "dilation": 2, "distance_bias": "layer"})",
       {"unknown field \"distance_bias\""}},
      {R"({"system": "sliding_window", "window": 0})", {"window", "0 is outside 1 .."}},
      {R"({"system": "dilated_window", "window": 10000, "dilation": 10000})", {"dilation", "10000 times window = 10000"}},
      {R"({"system": "strided_window", "window": 6, "stride": 0, "num_strided": 3})", {"stride", "0 is outside"}},
      {R"({"system": "strided_window", "window": 6, "stride": 4, "num_strided": 3, "mask_empty": false})", {"mask_empty", "false"}},
      {R"({"system": "l2g_window", "window": 6, "global_positions": [9, 3]})", {"global_positions", "not ascending"}},
      {R"({"system": "l2g_window", "window": 6, "global_positions": [16777216], "global_full": true})",
       {"16777217 rows", "16777216"}},
      {R"({"system": "l2g_window", "window": 6, "global_positions": [3], "global_projections": true})",
       {"unknown field \"global_projections\""}},
      {R"({"system": "gsa", "num_slots": 5, "control_bias": true})", {"unknown field \"control_bias\""}},
      {R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 11})",
       {"system", "\"memory_compressed\"", "value_head_dim = 3", "head_dim = 4"}},
      {R"({"system": "memory_compressed", "compression_factor": 1, "max_context": 11})", {"compression_factor", "1"}, kEqualHeads},
      {R"({"system": "memory_compressed", "compression_factor": 12, "max_context": 11})",
       {"compression_factor", "12 is above max_context = 11"},
       kEqualHeads},
  };
  for (const auto& c : cases) EXPECT_TRUE(FailsWith([&] { Parse(c.text, c.context); }, c.parts)) << c.text;
}

TEST(AttentionRefusals, SystemsWithoutTheForm) {
  const struct {
    AttentionForm form;
    const char* text;
    std::vector<std::string> parts;
  } cases[] = {
      {AttentionForm::kNoncausal, R"({"system": "gsa", "num_slots": 5})", {"system: \"gsa\" has no noncausal form, only: causal"}},
      {AttentionForm::kCross,
       R"({"system": "slot_attention", "control": "gsa", "num_slots": 5})",
       {"control: gsa has only a causal form"}},
      {AttentionForm::kNoncausal, R"({"system": "dilated_window"})", {"\"dilated_window\" has no noncausal form"}},
      {AttentionForm::kCross, R"({"system": "sliding_window"})", {"\"sliding_window\" has no cross form, only: causal, noncausal"}},
      {AttentionForm::kCausal, R"({"system": "clustered"})", {"\"clustered\" has no causal form, only: noncausal"}},
      {AttentionForm::kNoncausal,
       R"({"system": "rfa", "feature_map": "arccos", "num_features": 3, "gate": "forget"})",
       {"gate: \"forget\" has only a causal form"}},
      {AttentionForm::kCross,
       R"({"system": "abc_mlp", "num_slots": 5, "normalization": "frozen"})",
       {"normalization: \"frozen\" has only a causal form"}},
      {AttentionForm::kNoncausal, R"({"system": "sliding_window", "window": 3, "mask_empty": false})", {"mask_empty"}},
      {AttentionForm::kNoncausal,
       R"({"system": "softmax", "max_context": 9, "distance_bias": "model", "distance_buckets": 7})",
       {"distance_buckets", "7 is odd: each side has half of them"}},
      {AttentionForm::kCross, R"({"system": "softmax", "max_context": 9, "distance_bias": "model"})", {"distance_bias"}},
      {AttentionForm::kNoncausal,
       R"({"system": "l2g_window", "window": 3, "global_positions": [0], "global_full": true})",
       {"unknown field \"global_full\""}},
      {AttentionForm::kNoncausal, R"({"system": "l2g_window", "window": 3})", {"\"global_positions\" is missing"}},
      {AttentionForm::kCross, R"({"system": "l2g_window", "window": 3})", {"no cross form, only: causal, noncausal"}},
      {AttentionForm::kNoncausal, R"({"system": "clustered", "num_clusters": 3})", {"\"max_context\" is missing"}},
      {AttentionForm::kNoncausal,
       R"({"system": "probsparse", "masked_fill": "zero", "max_context": 9})",
       {"masked_fill", "cummean"}},
      {AttentionForm::kNoncausal,
       R"({"system": "kv_clustering", "num_slots": 5, "iterations": 0})",
       {"iterations", "0 is outside"}},
  };
  for (const auto& c : cases) {
    AttentionContext context = kContext;
    context.form = c.form;
    EXPECT_TRUE(FailsWith([&] { Parse(c.text, context); }, c.parts)) << c.text;
  }
}

TEST(AttentionRefusals, CompressiveTransformerKeepsProjectedRows) {
  const auto parse = [](uint32_t segment, uint32_t memory, bool bias, bool rope) {
    const Json object = {{"system", "compressive_transformer"},
                         {"segment_len", segment},
                         {"mem_len", memory},
                         {"cmem_len", 2},
                         {"compression_ratio", 3}};
    const AttentionContext context = {kContext.heads, 0, 20, bias, rope};
    Parse(object.dump(), context);
  };
  EXPECT_NO_THROW(parse(6, 9, true, false));
  EXPECT_NO_THROW(parse(5, 7, false, false));
  EXPECT_TRUE(FailsWith([&] { parse(6, 9, false, true); }, {"\"compressive_transformer\"", "position_embedding = \"rope\""}));
  EXPECT_TRUE(FailsWith([&] { parse(5, 9, true, false); }, {"compression_ratio: 3", "attention_bias", "segment_len = 5"}));
  EXPECT_TRUE(FailsWith([&] { parse(6, 7, true, false); }, {"compression_ratio: 3", "attention_bias", "mem_len = 7"}));
}

}  // namespace
}  // namespace tarn::convert
