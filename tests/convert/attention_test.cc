#include "tools/convert/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "variants/cache_policies.h"
#include "variants/linear.h"
#include "variants/slots.h"

namespace tarn::convert {
namespace {

// A layer of 4 query heads on 2 kv heads, d 4, dv 3, in a model of width 20.
const AttentionContext kContext = {format::Heads(4, 2, 4, 3), /*layer=*/1, /*hidden_size=*/20, false, false};
// A kv head per query head, and values as wide as keys.
const AttentionContext kEqualHeads = {format::Heads(4, 4, 4, 4), /*layer=*/1, /*hidden_size=*/20, false, false};

AttentionOp Parse(const std::string& text, const AttentionContext& context = kContext) {
  return ParseAttention(Json::parse(text), "config.json: attention", context);
}

// The attributes of an op as a reader of the file sees them.
template <typename Table>
class Written {
 public:
  explicit Written(const AttentionOp& op) {
    builder_.Finish(flatbuffers::Offset<Table>(op.attributes(builder_).o));
    table_ = flatbuffers::GetRoot<Table>(builder_.GetBufferPointer());
  }
  const Table* operator->() const { return table_; }

 private:
  flatbuffers::FlatBufferBuilder builder_;
  const Table* table_;
};
using LinearTable = Written<format::LinearState>;
using SlotTable = Written<format::SlotMemory>;
using CacheTable = Written<format::CacheAttention>;

std::string ShapeOf(const std::vector<uint32_t>& shape) {
  std::string text;
  for (const uint32_t dimension : shape) text += (text.empty() ? "[" : ",") + std::to_string(dimension);
  return text + "]";
}

// "g_proj[2]+bias projection[2,4,3] -> S[2,6,3] z[2,6]": projections of the layer input, tensors, states.
std::string Shapes(const AttentionOp& op) {
  std::string text;
  for (const LogitInput& logit : op.logits) {
    text += std::string(logit.projection) + "[" + std::to_string(logit.width) + "]" + (logit.bias ? "+bias" : "") +
            (logit.with_qkv ? "" : " alone") + " ";
  }
  if (op.drawn) text += std::string(op.drawn->name) + "[" + std::to_string(op.drawn->width) + "] ";
  for (const AttentionTensor& tensor : op.tensors) text += tensor.name + ShapeOf(tensor.shape) + " ";
  text += "->";
  for (const GraphState& state : op.states) text += " " + state.name + ShapeOf(state.shape);
  return text;
}

TEST(Attention, EverySystemWithWhatItRequires) {
  const struct {
    const char* text;
    const char* shapes;
    const AttentionContext& context = kContext;
  } cases[] = {
      {R"({"system": "rfa", "feature_map": "gaussian", "num_features": 3})", "projection[2,4,3] -> S[2,6,3] z[2,6]"},
      {R"({"system": "rfa", "feature_map": "arccos", "num_features": 3, "gate": "forget"})",
       "g_proj[2]+bias projection[2,4,3] -> S[2,3,3] z[2,3]"},
      {R"({"system": "rfa_normfree", "num_features": 3})", "projection[2,4,3] sigma[2,4] -> S[2,6,3] z[2,6] m[2]"},
      {R"({"system": "linear_transformer"})", "-> S[2,4,3] z[2,4]"},
      {R"({"system": "performer_trig", "num_features": 3})", "projection[2,4,3] -> S[2,6,3] z[2,6] m[2]"},
      {R"({"system": "performer_positive", "num_features": 3})", "projection[2,4,3] -> S[2,3,3] z[2,3] m[2]"},
      {R"({"system": "performer_relu"})", "-> S[2,4,3] z[2,4]"},
      {R"({"system": "performer_relu", "projection": true, "num_features": 5})", "projection[2,4,5] -> S[2,5,3] z[2,5]"},
      {R"({"system": "dpfp", "nu": 2})", "-> S[2,16,3] z[2,16]"},
      {R"({"system": "linear_attention", "feature_map": "mlp_relu", "num_features": 3, "den_mode": "add"})",
       "projection[2,4,3] feature_bias[2,3] -> S[2,3,3] z[2,3]"},
      {R"({"system": "linear_attention", "feature_map": "dpfp", "nu": 2, "rule": "delta"})", "b_proj[2] -> S[2,16,3]"},
      {R"({"system": "linear_attention", "feature_map": "positive", "num_features": 3})",
       "projection[2,4,3] -> S[2,3,3] z[2,3] m[2]"},
      {R"({"system": "linear_attention", "feature_map": "relu", "gate": "forget"})", "g_proj[2]+bias -> S[2,4,3]"},
      {R"({"system": "linear_attention", "feature_map": "identity", "gate": "vector"})", "g_proj[8] alone -> S[2,4,3]"},
      {R"({"system": "linear_attention", "feature_map": "identity", "gate": "constant"})", "decay[2] -> S[2,4,3]"},
      {R"({"system": "dpfp", "nu": 2, "den_mode": "none"})", "-> S[2,16,3]"},
      {R"({"system": "delta_rule", "nu": 2})", "b_proj[2] -> S[2,16,3]"},
      {R"({"system": "delta_rule", "feature_map": "elu_plus_one"})", "b_proj[2] -> S[2,4,3]"},
      {R"({"system": "delta_rule", "nu": 1, "attention_normalized": true})", "b_proj[2] -> S[2,8,3] z[2,8]"},
      {R"({"system": "deltanet"})", "b_proj[2] -> S[2,4,3]"},
      {R"({"system": "gated_deltanet"})", "g_proj[2]+bias b_proj[2] rate[2] -> S[2,4,3]"},
      {R"({"system": "gated_deltanet", "gate": "softplus_vector"})", "g_proj[8] alone b_proj[2] rate[2] -> S[2,4,3]"},
      {R"({"system": "linear_attention", "feature_map": "identity", "gate": "softplus", "den_mode": "add"})",
       "g_proj[2]+bias rate[2] -> S[2,4,3] z[2,4]"},
      {R"({"system": "t2r", "num_features": 3})", "projection[2,4,3] feature_bias[2,3] -> S[2,3,3] z[2,3]"},
      {R"({"system": "linear_attention", "feature_map": "product", "num_features": 3, "own_q_map": true})",
       "projection[2,4,6] feature_bias[2,6] q_projection[2,4,6] q_feature_bias[2,6] -> S[2,3,3]"},
      {R"({"system": "linear_attention", "feature_map": "hedgehog", "num_features": 3})",
       "projection[2,4,3] feature_bias[2,3] -> S[2,6,3]"},
      {R"({"system": "gla"})", "g_proj[8] alone -> S[2,4,3]"},
      {R"({"system": "short_conv"})", "->", kEqualHeads},
      {R"({"system": "rg_lru"})", "->", kEqualHeads},
      {R"({"system": "diagonal_recurrence"})", "g_proj[16] -> h[16]", kEqualHeads},
      {R"({"system": "diagonal_recurrence", "gate_bias": true, "gate_floor": true})", "g_proj[16]+bias floor[16] -> h[16]",
       kEqualHeads},
      {R"({"system": "diagonal_recurrence", "lower_bounds": true})", "g_proj[16] floor[16] -> h[16]", kEqualHeads},
      {R"({"system": "diagonal_recurrence", "decay": "exponential", "input": "root"})", "g_proj[16] rate[16] -> h[16]",
       kEqualHeads},
      {R"({"system": "retnet"})", "decay[4] -> S[4,4,4]", kEqualHeads},
      {R"({"system": "abc_mlp", "num_slots": 5})", "control_proj[10] alone -> K[2,4,5] V[2,5,3] mass[2,5]"},
      {R"({"system": "abc_mlp", "num_slots": 5, "own_value_control": true})",
       "control_proj[10] alone value_control_proj[10] alone -> K[2,4,5] V[2,5,3] mass[2,5] value_mass[2,5]"},
      {R"({"system": "linformer", "num_slots": 5, "max_len": 9, "own_value_control": true})",
       "schedule[9,5] value_schedule[9,5] -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 8, "cmem_len": 3, "compression_ratio": 4,
           "compression": "conv"})",
       "k_compress_proj[32] alone v_compress_proj[24] alone k_compress_bias[2,4] v_compress_bias[2,3] -> K[2,6,4] V[2,6,3] "
       "memory_K[2,8,4] memory_V[2,8,3] compressed_K[2,9,4] compressed_V[2,9,3] sum_K[2,1,4] sum_V[2,1,3]"},
      {R"({"system": "linformer", "num_slots": 5, "max_len": 9})", "schedule[9,5] -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "compressive_mean", "num_slots": 5, "max_len": 9})", "-> K[2,4,5] V[2,5,3] mass[2,5]"},
      {R"({"system": "abc_rd", "num_slots": 5})", "slot_index[2] -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "abc_rd", "num_slots": 5, "mask_empty": true})", "slot_index[2] -> K[2,4,5] V[2,5,3] mass[2,5]"},
      {R"({"system": "l2g_global", "global_positions": [0, 7]})", "-> K[2,4,2] V[2,2,3]"},
      {R"({"system": "gsa", "num_slots": 5})", "g_proj[10] alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "slot_attention", "control": "gsa", "num_slots": 5})", "control_proj[10] alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "slot_attention", "control": "abc_mlp", "num_slots": 5})",
       "control_proj[10] alone -> K[2,4,5] V[2,5,3] mass[2,5]"},
      {R"({"system": "luna_causal", "num_slots": 5})", "control_proj[10] alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "rfa", "feature_map": "arccos", "num_features": 3, "gate": "forget", "gate_bias": false})",
       "g_proj[2] projection[2,4,3] -> S[2,3,3] z[2,3]"},
      {R"({"system": "linear_attention", "feature_map": "relu", "gate": "forget", "gate_bias": false})", "g_proj[2] -> S[2,4,3]"},
      {R"({"system": "linear_attention", "feature_map": "identity", "rule": "delta", "beta_bias": true})",
       "b_proj[2]+bias -> S[2,4,3]"},
      {R"({"system": "delta_rule", "nu": 2, "beta_bias": true})", "b_proj[2]+bias -> S[2,16,3]"},
      {R"({"system": "deltanet", "beta_bias": true})", "b_proj[2]+bias -> S[2,4,3]"},
      {R"({"system": "gated_deltanet", "gate_bias": false, "beta_bias": true})", "g_proj[2] b_proj[2]+bias rate[2] -> S[2,4,3]"},
      {R"({"system": "gated_deltanet", "gate": "softplus_vector", "gate_bias": true})",
       "g_proj[8]+bias alone b_proj[2] rate[2] -> S[2,4,3]"},
      {R"({"system": "mamba2", "gate_bias": false})", "g_proj[2] rate[2] -> S[2,4,3]"},
      {R"({"system": "gsa", "num_slots": 5, "gate_bias": true})", "g_proj[10]+bias alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "abc_mlp", "num_slots": 5, "control_bias": true})",
       "control_proj[10]+bias alone -> K[2,4,5] V[2,5,3] mass[2,5]"},
      {R"({"system": "slot_attention", "control": "gsa", "num_slots": 5, "control_bias": true})",
       "control_proj[10]+bias alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "luna_causal", "num_slots": 5, "control_bias": true})", "control_proj[10]+bias alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "clustering_online", "num_slots": 5})", "-> K[2,4,5] V[2,5,3] mass[2,5]"},
      {R"({"system": "softmax", "max_context": 9})", "-> K[2,9,4] V[2,9,3]"},
      {R"({"system": "softmax", "max_context": 9, "distance_bias": "model", "distance_buckets": 6, "distance_max": 20})",
       "distance_bias.20[4,12] -> K[2,9,4] V[2,9,3]"},
      {R"({"system": "softmax", "max_context": 9, "distance_slopes": [1, 0.5, 0.25, 0]})", "-> K[2,9,4] V[2,9,3]"},
      {R"({"system": "sliding_window", "window": 6})", "-> K[2,6,4] V[2,6,3]"},
      {R"({"system": "dilated_window", "window": 6, "dilation": 2})", "-> K[2,12,4] V[2,12,3]"},
      {R"({"system": "strided_window", "window": 6, "stride": 4, "num_strided": 3})",
       "-> K[2,6,4] V[2,6,3] strided_K[2,3,4] strided_V[2,3,3]"},
      {R"({"system": "l2g_window", "window": 6, "global_positions": [3, 4]})",
       "-> K[2,6,4] V[2,6,3] global_K[2,2,4] global_V[2,2,3]"},
      {R"({"system": "l2g_window", "window": 6, "global_positions": [3, 4], "global_full": true})",
       "-> K[2,6,4] V[2,6,3] global_K[2,5,4] global_V[2,5,3]"},
      {R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 9, "cmem_len": 4, "compression_ratio": 3})",
       "-> K[2,6,4] V[2,6,3] memory_K[2,9,4] memory_V[2,9,3] compressed_K[2,4,4] compressed_V[2,4,3]"},
      {R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 11})",
       "conv_weight[4,4,12] conv_bias[4,4] null_k[4,4] null_v[4,4] -> K[4,3,4] V[4,3,4] waiting_K[4,2,4] waiting_V[4,2,4]",
       kEqualHeads},
      {R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 11, "null_kv": false})",
       "conv_weight[4,4,12] conv_bias[4,4] -> K[4,3,4] V[4,3,4] waiting_K[4,2,4] waiting_V[4,2,4]", kEqualHeads},
      {R"({"system": "cache_attention", "policy": "window", "window": 6, "dilation": 2})", "-> K[2,12,4] V[2,12,3]"},
      {R"({"system": "cache_attention", "policy": "l2g", "window": 6, "global_positions": [3, 4]})",
       "-> K[2,6,4] V[2,6,3] global_K[2,2,4] global_V[2,2,3]"},
      {R"({"system": "cache_attention", "policy": "memory_compressed", "compression_factor": 3, "max_context": 11})",
       "conv_weight[4,4,12] conv_bias[4,4] -> K[4,3,4] V[4,3,4] waiting_K[4,2,4] waiting_V[4,2,4]", kEqualHeads},
  };
  for (const auto& c : cases) {
    const Json object = Json::parse(c.text);
    EXPECT_EQ(Shapes(Parse(c.text, c.context)), c.shapes) << c.text;
    Json more = object;
    more["num_sloths"] = 1;
    EXPECT_TRUE(FailsWith([&] { Parse(more.dump(), c.context); }, {"config.json: attention: unknown field \"num_sloths\""}))
        << c.text;
  }
}

TEST(Attention, RequiredFields) {
  const char* const cases[] = {
      R"({"system": "rfa_normfree", "num_features": 3})",
      R"({"system": "performer_trig", "num_features": 3})",
      R"({"system": "performer_positive", "num_features": 3})",
      R"({"system": "dpfp", "nu": 2})",
      R"({"system": "delta_rule", "nu": 2})",
      R"({"system": "t2r", "num_features": 3})",
      R"({"system": "linformer", "num_slots": 5, "max_len": 9})",
      R"({"system": "compressive_mean", "num_slots": 5, "max_len": 9})",
      R"({"system": "abc_rd", "num_slots": 5})",
      R"({"system": "l2g_global", "global_positions": [0]})",
      R"({"system": "gsa", "num_slots": 5})",
      R"({"system": "luna_causal", "num_slots": 5})",
      R"({"system": "clustering_online", "num_slots": 5})",
      R"({"system": "sliding_window", "window": 6})",
      R"({"system": "dilated_window", "window": 6, "dilation": 2})",
      R"({"system": "strided_window", "window": 6, "stride": 4, "num_strided": 3})",
      R"({"system": "l2g_window", "window": 6, "global_positions": [3]})",
      R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 9, "cmem_len": 4, "compression_ratio": 3})",
      R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 11})",
  };
  for (const char* text : cases) {
    const Json whole = Json::parse(text);
    for (const auto& field : whole.items()) {
      Json object = whole;
      object.erase(field.key());
      EXPECT_TRUE(FailsWith([&] { Parse(object.dump(), kEqualHeads); }, {"\"" + field.key() + "\" is missing"})) << text;
    }
  }
}

TEST(Attention, LinearDefaults) {
  const auto parse = [](const char* text) { return LinearTable(Parse(text)); };
  const auto is = [](const LinearTable& table, DenMode mode, float eps, float scale) {
    return table->den_mode() == static_cast<uint8_t>(mode) && table->den_eps() == eps && table->scale() == scale;
  };
  const LinearTable normfree = parse(R"({"system": "rfa_normfree", "num_features": 3})");
  EXPECT_TRUE(is(normfree, DenMode::kClampMin, 1e-2f, 1));
  EXPECT_TRUE(normfree->key_norm_weight() && normfree->key_norm_sigma());
  EXPECT_EQ(normfree->qk_norm(), static_cast<uint8_t>(VectorNorm::kNone));
  EXPECT_TRUE(is(parse(R"({"system": "linear_transformer"})"), DenMode::kAdd, 1e-6f, 1));
  const LinearTable trig = parse(R"({"system": "performer_trig", "num_features": 3})");
  EXPECT_TRUE(is(trig, DenMode::kClampMin, 1e-2f, 1));
  EXPECT_EQ(trig->input_scale(), std::sqrt(0.5f));
  EXPECT_TRUE(trig->key_norm_weight() && !trig->key_norm_sigma());
  const LinearTable positive = parse(R"({"system": "performer_positive", "num_features": 3})");
  EXPECT_TRUE(is(positive, DenMode::kAdd, 1e-6f, 1));
  EXPECT_EQ(positive->input_scale(), std::sqrt(0.5f));
  EXPECT_FALSE(positive->key_norm_weight());
  const LinearTable relu = parse(R"({"system": "performer_relu"})");
  EXPECT_TRUE(is(relu, DenMode::kAdd, 1e-6f, 1));
  EXPECT_EQ(relu->input_scale(), 1.0f);
  EXPECT_EQ(relu->ratio(), 1.0f);
  EXPECT_EQ(relu->feature_eps(), 1e-3f);
  EXPECT_EQ(relu->num_features(), 0u);
  const LinearTable dpfp = parse(R"({"system": "dpfp", "nu": 2})");
  EXPECT_TRUE(is(dpfp, DenMode::kAdd, 1e-6f, 1));
  EXPECT_EQ(dpfp->nu(), 2u);
  EXPECT_FALSE(dpfp->negate_second() || dpfp->sum_norm());
  EXPECT_TRUE(parse(R"({"system": "dpfp", "nu": 2, "dpfp_variant": "fla"})")->negate_second());
  const LinearTable delta = parse(R"({"system": "delta_rule", "nu": 2})");
  EXPECT_TRUE(is(delta, DenMode::kNone, 0, 1));
  EXPECT_EQ(delta->rule(), static_cast<uint8_t>(WriteRule::kDelta));
  EXPECT_TRUE(delta->sum_norm() && !delta->attention_normalized());
  EXPECT_EQ(delta->sum_norm_eps(), 1e-6f);
  EXPECT_EQ(delta->beta_scale(), 1.0f);
  EXPECT_EQ(parse(R"({"system": "delta_rule", "nu": 2, "attention_normalized": true})")->den_eps(), 1e-5f);
  const LinearTable deltanet = parse(R"({"system": "deltanet"})");
  EXPECT_TRUE(is(deltanet, DenMode::kNone, 0, 0.5f));
  EXPECT_EQ(deltanet->qk_norm(), static_cast<uint8_t>(VectorNorm::kL2Inside));
  EXPECT_EQ(deltanet->qk_norm_eps(), 1e-6f);
  const AttentionOp gated = Parse(R"({"system": "gated_deltanet"})");
  EXPECT_EQ(LinearTable(gated)->gate(), static_cast<uint8_t>(Gate::kSoftplus));
  EXPECT_EQ(LinearTable(gated)->qk_norm_eps(), 1e-6f);
  EXPECT_EQ(LinearTable(gated)->scale(), 0.5f);
  EXPECT_EQ(LinearTable(gated)->key_heads(), 0u);
  EXPECT_EQ(gated.tensors[0].fold({{0.0f, std::log(3.0f)}})[0], 1.0f);
  EXPECT_NEAR(gated.tensors[0].fold({{0.0f, std::log(3.0f)}})[1], 3.0f, 1e-6f);
  EXPECT_TRUE(FailsWith([&] { gated.tensors[0].fold({{0.0f, 100.0f}}); }, {"A_log", "100 found"}));
  const AttentionOp rates = Parse(R"({"system": "diagonal_recurrence", "decay": "exponential", "rate_scale": 2})", kEqualHeads);
  EXPECT_NEAR(rates.tensors[0].fold({{0.0f, 50.0f, -200.0f}})[0], 2 * std::log(2.0f), 1e-6f);
  EXPECT_EQ(rates.tensors[0].fold({{0.0f, 50.0f, -200.0f}})[1], 100.0f);
  EXPECT_EQ(rates.tensors[0].fold({{0.0f, 50.0f, -200.0f}})[2], 0.0f);
  EXPECT_TRUE(FailsWith([&] { rates.tensors[0].fold({{3e38f}}); }, {"rate_logit", "finite expected"}));
  const AttentionOp floor = Parse(R"({"system": "diagonal_recurrence", "gate_floor": true})", kEqualHeads);
  EXPECT_EQ(floor.tensors[0].fold({{0.0f, 1.0f}})[1], 1.0f);
  EXPECT_TRUE(FailsWith([&] { floor.tensors[0].fold({{0.0f, 1.5f}}); }, {"floor", "1.5 found, 0 to 1 expected"}));
  const LinearTable t2r = parse(R"({"system": "t2r", "num_features": 3})");
  EXPECT_TRUE(is(t2r, DenMode::kClampMin, 1e-2f, 1));
  EXPECT_EQ(t2r->q_input_scale(), 0.5f);
  EXPECT_EQ(t2r->qk_norm(), static_cast<uint8_t>(VectorNorm::kNone));
  const LinearTable gla = parse(R"({"system": "gla"})");
  EXPECT_TRUE(is(gla, DenMode::kNone, 0, 0.5f));
  EXPECT_EQ(gla->gate_normalizer(), 16.0f);
  EXPECT_EQ(gla->gate_min(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(parse(R"({"system": "gla", "gate_clamp_min": -0.25})")->gate_min(), -0.25f);
  EXPECT_EQ(LinearTable(Parse(R"({"system": "retnet"})", kEqualHeads))->scale(), 0.5f);
  EXPECT_EQ(gla->system()->str(), "gla");
  EXPECT_EQ(parse(R"({"system": "rfa", "feature_map": "arccos", "num_features": 3, "gate": "forget"})")->system()->str(),
            "rfa_gate");
}

TEST(Attention, SlotDefaults) {
  const auto parse = [](const char* text) { return SlotTable(Parse(text)); };
  const SlotTable linformer = parse(R"({"system": "linformer", "num_slots": 5, "max_len": 9})");
  EXPECT_EQ(linformer->control(), static_cast<uint8_t>(SlotControl::kLinformer));
  EXPECT_EQ(linformer->max_len(), 9u);
  EXPECT_EQ(linformer->scale(), 0.5f);
  EXPECT_FALSE(linformer->mask_empty());
  EXPECT_TRUE(parse(R"({"system": "compressive_mean", "num_slots": 5, "max_len": 9})")->mask_empty());
  const SlotTable drawn = parse(R"({"system": "abc_rd", "num_slots": 5})");
  EXPECT_EQ(drawn->control(), static_cast<uint8_t>(SlotControl::kAssigned));
  EXPECT_FALSE(drawn->mask_empty());
  EXPECT_EQ(drawn->scale(), 0.5f);
  const SlotTable global = parse(R"({"system": "l2g_global", "global_positions": [2, 70000]})");
  EXPECT_EQ(global->control(), static_cast<uint8_t>(SlotControl::kGlobal));
  EXPECT_EQ(global->positions()->Get(1), 70000u);
  EXPECT_TRUE(global->mask_empty());
  const SlotTable gsa = parse(R"({"system": "gsa", "num_slots": 5})");
  EXPECT_EQ(gsa->control(), static_cast<uint8_t>(SlotControl::kGsa));
  EXPECT_EQ(gsa->gate_normalizer(), 8.0f);
  EXPECT_EQ(gsa->scale(), 1.0f);
  EXPECT_EQ(parse(R"({"system": "luna_causal", "num_slots": 5})")->control(), static_cast<uint8_t>(SlotControl::kLunaCausal));
  const SlotTable clustering = parse(R"({"system": "clustering_online", "num_slots": 5})");
  EXPECT_TRUE(clustering->mask_empty());
  EXPECT_EQ(clustering->system()->str(), "clustering_online");
}

TEST(Attention, CacheDefaults) {
  const auto parse = [](const char* text, const AttentionContext& context = kContext) { return CacheTable(Parse(text, context)); };
  const auto number = [](CachePolicy policy) { return static_cast<uint8_t>(policy); };
  const CacheTable sliding = parse(R"({"system": "sliding_window", "window": 6})");
  EXPECT_EQ(sliding->policy(), number(CachePolicy::kWindow));
  EXPECT_EQ(sliding->dilation(), 1u);
  EXPECT_EQ(sliding->scale(), 0.5f);
  EXPECT_TRUE(sliding->mask_empty());
  EXPECT_FALSE(parse(R"({"system": "sliding_window", "window": 6, "mask_empty": false})")->mask_empty());
  EXPECT_EQ(parse(R"({"system": "dilated_window", "window": 6, "dilation": 2})")->dilation(), 2u);
  const CacheTable strided = parse(R"({"system": "strided_window", "window": 6, "stride": 4, "num_strided": 3})");
  EXPECT_EQ(strided->policy(), number(CachePolicy::kStrided));
  EXPECT_EQ(strided->stride(), 4u);
  EXPECT_EQ(strided->num_strided(), 3u);
  const CacheTable united = parse(R"({"system": "l2g_window", "window": 6, "global_positions": [3, 4]})");
  EXPECT_EQ(united->policy(), number(CachePolicy::kL2g));
  EXPECT_EQ(united->positions()->size(), 2u);
  const CacheTable compressive =
      parse(R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 9, "cmem_len": 4, "compression_ratio": 3})");
  EXPECT_EQ(compressive->policy(), number(CachePolicy::kCompressive));
  EXPECT_EQ(compressive->mem_len(), 9u);
  EXPECT_EQ(compressive->compression_ratio(), 3u);
  const char* const memory = R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 11})";
  const CacheTable blocks = parse(memory, kEqualHeads);
  EXPECT_EQ(blocks->policy(), number(CachePolicy::kMemoryCompressed));
  EXPECT_EQ(blocks->capacity(), 11u);
  EXPECT_EQ(blocks->factor(), 3u);
  EXPECT_TRUE(blocks->null_kv());
  EXPECT_EQ(blocks->scale(), static_cast<float>(1 / std::sqrt(20.0)));  // of the model
  Json head = Json::parse(memory);
  head["scale_dim"] = "head";
  EXPECT_EQ(parse(head.dump().c_str(), kEqualHeads)->scale(), 0.5f);
  EXPECT_EQ(blocks->system()->str(), "memory_compressed");
}

AttentionContext InForm(AttentionForm form, const AttentionContext& context = kContext) {
  AttentionContext other = context;
  other.form = form;
  return other;
}

TEST(Attention, FormsOverWholeSequencesHaveNoState) {
  const struct {
    const char* text;
    const char* shapes;
    format::OpAttributes type;
  } cases[] = {
      {R"({"system": "rfa", "feature_map": "arccos", "num_features": 3})", "projection[4,4,3] ->",
       format::OpAttributes::NoncausalLinear},
      {R"({"system": "performer_positive", "num_features": 3, "feature_eps": 0.1})", "projection[4,4,3] ->",
       format::OpAttributes::NoncausalLinear},
      {R"({"system": "abc_mlp", "num_slots": 5})", "control_proj[20] alone ->", format::OpAttributes::NoncausalSlots},
      {R"({"system": "abc_rd", "num_slots": 5})", "slot_index[4] ->", format::OpAttributes::NoncausalSlots},
      {R"({"system": "kv_clustering", "num_slots": 5})", "->", format::OpAttributes::NoncausalSlots},
      {R"({"system": "softmax", "max_context": 9})", "->", format::OpAttributes::NoncausalCache},
      {R"({"system": "sliding_window", "window": 4})", "->", format::OpAttributes::NoncausalCache},
      {R"({"system": "l2g_window", "window": 4, "global_positions": [0]})", "->", format::OpAttributes::NoncausalCache},
      {R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 9})",
       "conv_weight[4,4,12] conv_bias[4,4] null_k[4,4] null_v[4,4] ->", format::OpAttributes::NoncausalCache},
      {R"({"system": "clustered", "num_clusters": 3, "max_context": 9})", "hash_planes[63,5] ->",
       format::OpAttributes::ClusteredAttention},
      {R"({"system": "improved_clustered", "num_clusters": 3, "bits": 31, "max_context": 9})", "hash_planes[31,5] ->",
       format::OpAttributes::ClusteredAttention},
      {R"({"system": "probsparse", "max_context": 9})", "->", format::OpAttributes::ProbSparse},
  };
  for (const auto& c : cases) {
    const AttentionOp op = Parse(c.text, InForm(AttentionForm::kNoncausal, kEqualHeads));
    EXPECT_EQ(Shapes(op), c.shapes) << c.text;
    EXPECT_EQ(op.type, c.type) << c.text;
  }
}

TEST(Attention, CrossFormsLeaveStatesOfTheSource) {
  const struct {
    const char* text;
    const char* shapes;
  } cases[] = {
      {R"({"system": "rfa", "feature_map": "gaussian", "num_features": 3})", "projection[2,4,3] -> S[2,6,3] z[2,6]"},
      {R"({"system": "rfa", "feature_map": "arccos", "num_features": 3, "den_mode": "none"})", "projection[2,4,3] -> S[2,3,3]"},
      {R"({"system": "performer_trig", "num_features": 3})", "projection[2,4,3] -> S[2,6,3] z[2,6]"},
      {R"({"system": "abc_mlp", "num_slots": 5})", "control_proj[10] alone -> K[2,4,5] V[2,5,3]"},
      {R"({"system": "abc_mlp", "num_slots": 5, "mask_empty": true})", "control_proj[10] alone -> K[2,4,5] V[2,5,3] bias[2,5]"},
      {R"({"system": "kv_clustering", "num_slots": 5, "mass_bias": true})", "-> K[2,4,5] V[2,5,3] bias[2,5]"},
      {R"({"system": "softmax", "max_context": 9})", "-> K[2,1,4] V[2,1,3]"},
  };
  for (const auto& c : cases) {
    const AttentionOp op = Parse(c.text, InForm(AttentionForm::kCross));
    EXPECT_EQ(Shapes(op), c.shapes) << c.text;
    for (const GraphState& state : op.states) EXPECT_EQ(state.owner, format::Owner::Source) << c.text;
  }
  const AttentionOp softmax = Parse(R"({"system": "softmax", "max_context": 9})", InForm(AttentionForm::kCross));
  EXPECT_EQ(softmax.states[0].source_axis, 1);
  EXPECT_EQ(softmax.scales[0].state.source_axis, 2);
  EXPECT_EQ(Written<format::NoncausalCache>(softmax)->part(), format::NoncausalPart::Write);
}

TEST(Attention, FeatureMapsThatOlderReadersDoNotKnowAreNamedInEveryForm) {
  const char* const maps[] = {R"({"system": "linear_attention", "feature_map": "product", "num_features": 3})",
                              R"({"system": "linear_attention", "feature_map": "hedgehog", "num_features": 3})",
                              R"({"system": "t2r", "num_features": 3, "normalize_qk": true, "q_norm_eps": 0})"};
  for (const char* map : maps) {
    for (const AttentionForm form : {AttentionForm::kCausal, AttentionForm::kNoncausal, AttentionForm::kCross}) {
      const AttentionOp op = Parse(map, InForm(form, kEqualHeads));
      ASSERT_EQ(op.features.size(), 1u) << map;
      EXPECT_STREQ(op.features[0], "feature_maps");
    }
  }
}

TEST(Attention, AnEpsOfQAlone) {
  const LinearTable own(Parse(R"({"system": "deltanet", "norm_eps": 1e-5, "q_norm_eps": 0.25})"));
  EXPECT_EQ(own->qk_norm_eps(), 1e-5f);
  EXPECT_EQ(own->q_norm_eps(), 0.25f);
  const AttentionOp plain = Parse(R"({"system": "rfa", "feature_map": "arccos", "num_features": 3, "normalize_qk": false,
                                      "q_norm_eps": 0.25})");
  EXPECT_TRUE(plain.features.empty());  // nothing is normalised
  EXPECT_EQ(LinearTable(plain)->q_norm_eps(), -1.0f);
  EXPECT_TRUE(FailsWith([] { Parse(R"({"system": "deltanet", "q_norm_eps": -1})"); }, {"q_norm_eps", "-1 must not be negative"}));
}

// 0 is what public Performers divide by; a config.json without den_eps goes on meaning 1e-6.
TEST(Attention, APerformerMayDivideByThePlainSum) {
  for (const char* system : {"performer_positive", "performer_relu"}) {
    Json object = {{"system", system}};
    if (system == std::string("performer_positive")) object["num_features"] = 3;
    EXPECT_EQ(LinearTable(Parse(object.dump()))->den_eps(), 1e-6f);
    object["den_eps"] = 0;
    EXPECT_EQ(LinearTable(Parse(object.dump()))->den_eps(), 0.0f);
  }
}

TEST(Attention, RowsThatSeeEverythingAreNamedForOlderReaders) {
  const auto features = [](const char* more, AttentionForm form) {
    Json object = Json::parse(R"({"system": "l2g_window", "window": 4, "global_positions": [0]})");
    object.update(Json::parse(more));
    const AttentionOp op = Parse(object.dump(), InForm(form));
    return std::vector<std::string>(op.features.begin(), op.features.end());
  };
  const std::vector<std::string> none, named = {"global_rows"};
  EXPECT_EQ(features("{}", AttentionForm::kCausal), none);
  EXPECT_EQ(features(R"({"global_full": true})", AttentionForm::kCausal), named);
  EXPECT_EQ(features("{}", AttentionForm::kNoncausal), named);
  EXPECT_EQ(features(R"({"global_projections": true})", AttentionForm::kNoncausal), named);
}

TEST(Attention, ThresholdsOfHashesAreZeroUnlessTheyAreWanted) {
  const AttentionContext two = InForm(AttentionForm::kNoncausal, {format::Heads(1, 1, 2, 2), 0, 2, false, false});
  const char* const plain = R"({"system": "clustered", "num_clusters": 1, "bits": 2, "max_context": 9})";
  EXPECT_EQ(Parse(plain, two).tensors[0].fold({{1, 2, 3, 4, 5, 6}}), (std::vector<float>{1, 2, 0, 4, 5, 0}));
  Json biased = Json::parse(plain);
  biased["hash_bias"] = true;
  EXPECT_FALSE(Parse(biased.dump(), two).tensors[0].fold);
}

std::vector<float> Count(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

TEST(Attention, TensorsAreTransposed) {
  const AttentionOp linformer = Parse(R"({"system": "linformer", "num_slots": 2, "max_len": 3})");
  EXPECT_EQ(linformer.tensors[0].parts[0].name, "linformer_weight");
  EXPECT_EQ(ShapeOf(linformer.tensors[0].parts[0].shape), "[2,3]");
  EXPECT_EQ(linformer.tensors[0].fold({Count(6)}), (std::vector<float>{0, 3, 1, 4, 2, 5}));

  const AttentionContext two = {format::Heads(1, 1, 2, 2), 0, 2, false, false};
  const AttentionOp conv = Parse(R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 9})", two);
  EXPECT_EQ(ShapeOf(conv.tensors[0].parts[0].shape), "[2,2,3]");  // output channel, input channel, tap
  EXPECT_EQ(conv.tensors[0].fold({Count(12)}), (std::vector<float>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
  EXPECT_EQ(ShapeOf(conv.tensors[1].parts[0].shape), "[2]");
  EXPECT_EQ(conv.tensors[0].parts[0].init, Init::kConv);

  const AttentionOp t2r = Parse(R"({"system": "t2r", "num_features": 3})", two);
  EXPECT_EQ(t2r.tensors[0].parts[0].name, "feature_weight");
  EXPECT_EQ(t2r.tensors[0].fold({Count(6)}), (std::vector<float>{0, 2, 4, 1, 3, 5}));

  // sigma is a factor of the projection, and the weight of keys needs it once more.
  const AttentionOp normfree = Parse(R"({"system": "rfa_normfree", "num_features": 3})", two);
  EXPECT_EQ(normfree.tensors[0].fold({Count(6), {1, 10}}), (std::vector<float>{0, 2, 4, 10, 30, 50}));
  EXPECT_EQ(normfree.tensors[1].parts[0].name, "sigma");
  EXPECT_EQ(Parse(R"({"system": "performer_trig", "num_features": 3})", two).tensors[0].parts.size(), 1u);
}

TEST(Attention, DecayIsAConstantOfTheModel) {
  const AttentionOp retnet = Parse(R"({"system": "retnet"})", kEqualHeads);
  EXPECT_TRUE(retnet.tensors[0].parts.empty());
  EXPECT_EQ(retnet.tensors[0].fold({}), (std::vector<float>{0.96875f, 0.984375f, 0.9921875f, 0.99609375f}));
  const AttentionOp given = Parse(R"({"system": "retnet", "decay": [0.5, 1, 0.25, 0.125]})", kEqualHeads);
  EXPECT_EQ(given.tensors[0].fold({}), (std::vector<float>{0.5f, 1.0f, 0.25f, 0.125f}));
}

TEST(Attention, RandomSlotsKnowSeedAndLayer) {
  const AttentionOp op = Parse(R"({"system": "abc_rd", "num_slots": 5, "seed": 18446744073709551615})");
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<format::RandomSlots>(op.drawn->attributes(builder).o));
  const auto* slots = flatbuffers::GetRoot<format::RandomSlots>(builder.GetBufferPointer());
  EXPECT_EQ(slots->num_slots(), 5u);
  EXPECT_EQ(slots->seed(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(slots->layer(), 1u);
}

}  // namespace
}  // namespace tarn::convert
