// Small models for tests, made in memory by the converter from a config and seeded random weights.
#ifndef TARN_TESTS_SUPPORT_MODELS_H_
#define TARN_TESTS_SUPPORT_MODELS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/convert/build/graph_builder.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/checkpoint/random_weights.h"
#include "tools/convert/config/config.h"
#include "tools/convert/config/state_type.h"
#include "tools/convert/writer/model_writer.h"
#include "tools/convert/writer/output_file.h"
#include "variants/cache_policies.h"

namespace tarn::test {

constexpr const char* kRfa = R"({"system": "rfa", "feature_map": "gaussian", "num_features": 8, "gate": "forget"})";
constexpr const char* kArccos = R"({"system": "rfa", "feature_map": "arccos", "num_features": 24})";
constexpr const char* kAbc = R"({"system": "abc_mlp", "num_slots": 6})";
constexpr const char* kAbcRelu = R"({"system": "abc_mlp", "num_slots": 6, "activation": "relu", "mask_empty": true})";
constexpr const char* kSoftmax = R"({"system": "softmax", "max_context": 150})";

constexpr const char* kGroupedHeads = R"("num_kv_heads": 2, "value_head_dim": 12)";
constexpr const char* kPlainHeads = R"("num_kv_heads": 4)";

// A language model of 2 layers over bytes, E 32, 4 heads. `attention` is an attention object, or a list of two.
inline std::string ConfigText(const std::string& attention, const std::string& position = "rope",
                              const std::string& heads = kGroupedHeads) {
  return R"({"task": "causal_lm", "vocab_size": 256, "hidden_size": 32, "num_layers": 2, "num_heads": 4, )" + heads + R"(,
    "intermediate_size": 48, "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5,
    "attention_bias": false, "tokenizer": "bytes", "position_embedding": ")" +
         position + R"(", "attention": )" + attention + "}";
}

// The same with something around the attention op: a convolution, activations, a norm of heads or of rows, a gate.
constexpr const char* kBlockOfHeads =
    R"("num_kv_heads": 2, "value_head_dim": 12, "attention_conv": true, "conv_bias": true, "qk_activation": "relu",
       "output_norm": "head", "output_norm_eps": 1e-5, "output_gate": "silu")";
constexpr const char* kBlockOfRows =
    R"("num_kv_heads": 2, "attention_conv": true, "conv_taps": 8, "conv_activation": "none", "v_activation": "silu",
       "output_activation": "silu", "output_norm": "full", "output_norm_eps": 1e-5)";

// And with heads of q and k that several heads of v share.
constexpr const char* kBlockOfKeys =
    R"("num_key_heads": 2, "value_head_dim": 12, "attention_conv": true, "output_norm": "head", "output_norm_eps": 1e-5,
       "output_gate": "sigmoid", "output_gate_low_rank": true, "output_gate_rank": 5, "output_gate_bias": true)";

// For recurrences, which read v alone.
constexpr const char* kBlockOfValues =
    R"("attention_conv": true, "conv_taps": 3, "conv_bias": true, "conv_activation": "none", "output_gate": "gelu_tanh",
       "output_gate_bias": true)";

// And with what Mamba 2 and RWKV-7 have around theirs.
constexpr const char* kBlockOfSteps =
    R"("num_key_heads": 2, "value_head_dim": 12, "attention_conv": true, "conv_bias": true, "output_skip": "head",
       "output_gate": "silu", "output_gate_first": true, "output_norm": "full", "output_norm_eps": 1e-5)";
constexpr const char* kBlockOfShifts =
    R"("value_head_dim": 12, "token_shift": true, "value_residual": true, "value_residual_low_rank": true,
       "value_residual_rank": 3, "output_norm": "groups", "output_norm_eps": 1e-4, "output_skip": "products",
       "output_gate": "linear", "output_gate_low_rank": true, "output_gate_rank": 5, "output_gate_hidden_act": "sigmoid")";

// Every causal system that the other constants do not show, small enough that rings wrap and windows end within 130 tokens.
struct SystemCase {
  const char* name;
  const char* attention;
  const char* heads = kGroupedHeads;
};
constexpr SystemCase kMoreSystems[] = {
    {"rfa_normfree", R"({"system": "rfa_normfree", "num_features": 8})"},
    {"linear_transformer", R"({"system": "linear_transformer"})"},
    {"performer_trig", R"({"system": "performer_trig", "num_features": 8})"},
    {"performer_positive", R"({"system": "performer_positive", "num_features": 12})"},
    {"performer_relu", R"({"system": "performer_relu"})"},
    {"dpfp", R"({"system": "dpfp", "nu": 2})"},
    {"delta_rule", R"({"system": "delta_rule", "nu": 1})"},
    {"delta_attn_norm", R"({"system": "delta_rule", "nu": 1, "attention_normalized": true})"},
    {"deltanet", R"({"system": "deltanet"})"},
    {"gated_deltanet", R"({"system": "gated_deltanet", "beta_scale": 2})"},
    {"gated_delta_keys", R"({"system": "gated_deltanet"})", kBlockOfKeys},
    {"gated_delta_channels",
     R"({"system": "gated_deltanet", "gate": "softplus_vector", "gate_low_rank": true, "gate_rank": 3, "gate_bias": true})",
     kBlockOfKeys},
    {"delta_vector", R"({"system": "linear_attention", "feature_map": "identity", "normalize_qk": true, "rule": "delta",
                         "gate": "vector"})"},
    {"hgrn2", R"({"system": "hgrn2"})"},
    {"mamba2", R"({"system": "mamba2", "step_min": 0.125, "step_max": 2})", kBlockOfSteps},
    {"rwkv7",
     R"({"system": "rwkv7", "gate_low_rank": true, "gate_rank": 3, "gate_hidden_act": "tanh", "gate_bias": true,
         "beta_low_rank": true, "beta_rank": 2, "beta_bias": true})",
     kBlockOfShifts},
    {"replace_vector", R"({"system": "linear_attention", "feature_map": "identity", "rule": "replace", "gate": "vector"})"},
    {"t2r", R"({"system": "t2r", "num_features": 6})"},
    {"gla", R"({"system": "gla"})"},
    {"gla_block", R"({"system": "gla", "gate_low_rank": true, "gate_rank": 3, "gate_bias": true})", kBlockOfHeads},
    {"gsa_block", R"({"system": "gsa", "num_slots": 5})", kBlockOfRows},
    {"retnet", R"({"system": "retnet"})", kPlainHeads},
    {"short_conv", R"({"system": "short_conv", "taps": 4, "bias": true})", kPlainHeads},
    {"rg_lru", R"({"system": "rg_lru"})", kBlockOfValues},
    {"diagonal_recurrence", R"({"system": "diagonal_recurrence", "gate_bias": true, "gate_floor": true})", kBlockOfValues},
    {"diagonal_exponential", R"({"system": "diagonal_recurrence", "decay": "exponential", "input": "root"})", kPlainHeads},
    {"linformer", R"({"system": "linformer", "num_slots": 5, "max_len": 150})"},
    {"linformer_values", R"({"system": "linformer", "num_slots": 5, "max_len": 150, "own_value_control": true})"},
    {"abc_values", R"({"system": "abc_mlp", "num_slots": 5, "own_value_control": true})"},
    {"abc_of_heads", R"({"system": "abc_mlp", "num_slots": 5, "own_value_control": true, "control_input": "heads"})"},
    {"abc_rd", R"({"system": "abc_rd", "num_slots": 5, "seed": 3})"},
    {"compressive_mean", R"({"system": "compressive_mean", "num_slots": 5, "max_len": 150})"},
    {"l2g_global", R"({"system": "l2g_global", "global_positions": [0, 3, 30]})"},
    {"clustering_online", R"({"system": "clustering_online", "num_slots": 5})"},
    {"gsa", R"({"system": "gsa", "num_slots": 5})"},
    {"slot_attention", R"({"system": "slot_attention", "control": "luna_causal", "num_slots": 5})"},
    {"luna_causal", R"({"system": "luna_causal", "num_slots": 5})"},
    {"sliding_window", R"({"system": "sliding_window", "window": 9})"},
    {"sliding_window_literal", R"({"system": "sliding_window", "window": 9, "mask_empty": false})"},
    {"dilated_window", R"({"system": "dilated_window", "window": 5, "dilation": 3})"},
    {"strided_window", R"({"system": "strided_window", "window": 6, "stride": 4, "num_strided": 5})"},
    {"l2g_window", R"({"system": "l2g_window", "window": 7, "global_positions": [1, 5, 40]})"},
    {"l2g_full", R"({"system": "l2g_window", "window": 7, "global_positions": [1, 5, 40], "global_full": true})"},
    {"compressive_transformer",
     R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 8, "cmem_len": 3, "compression_ratio": 4})"},
    {"compressive_conv",
     R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 9, "cmem_len": 3, "compression_ratio": 4,
         "compression": "conv", "pad": "left_remainder"})"},
    {"memory_compressed", R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 150})", kPlainHeads},
};

// An attention object with a policy of variants/cache_policies.h and small numbers, for heads as kPlainHeads.
inline std::string WithPolicy(const CachePolicyInfo& policy) {
  std::string text = R"({"system": "cache_attention", "policy": ")" + std::string(policy.name) + "\"";
  const uint32_t wanted = policy.AttributesOf(kCausalForm);
#define TARN_SIZE(name, key, fallback, least, most) \
  if ((wanted & reads::name) != 0) text += ", \"" key "\": " + std::string(reads::name == reads::capacity ? "150" : "6");
#define TARN_FLAG(name, fallback)
#define TARN_LIST(name, key) \
  if ((wanted & reads::name) != 0) text += ", \"" key "\": [1, 5, 40]";
#define TARN_CHOICE(...)
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST, TARN_CHOICE)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
#undef TARN_CHOICE
  return text + "}";
}

inline std::vector<uint8_t> MakeModel(const std::string& config_text, convert::Precision precision = convert::Precision::kF32,
                                      format::DType state = format::DType::F32, const convert::ShortlistFile* shortlist = nullptr) {
  convert::ModelConfig config = convert::ParseConfig(config_text, "test");
  convert::SetStateTypes(state, /*force=*/true, &config);  // what it loses does not matter here
  if (shortlist != nullptr) convert::SetShortlist(*shortlist, &config);
  convert::GraphBuilder builder(precision);
  convert::BuildModel(config, &builder);
  builder.graph().name = "test";
  const convert::RandomWeights weights(/*seed=*/1);
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), weights, &sink);
  return sink.bytes();
}

constexpr size_t kHeaderBytes = 64;

inline uint64_t LoadU64(const std::vector<uint8_t>& file, size_t offset) {
  uint64_t value;
  std::memcpy(&value, file.data() + offset, sizeof(value));
  return value;
}

inline uint32_t GraphBytes(const std::vector<uint8_t>& file) { return static_cast<uint32_t>(LoadU64(file, 8) >> 32); }

// Makes header and graph match their hash again, after a test has changed them.
inline void Rehash(std::vector<uint8_t>* file) {
  std::vector<uint8_t> hashed(file->begin(), file->begin() + 32);
  hashed.insert(hashed.end(), file->begin() + kHeaderBytes, file->begin() + kHeaderBytes + GraphBytes(*file));
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(hashed.data(), hashed.size()));
  std::memcpy(file->data() + 32, canonical.digest, sizeof(canonical.digest));
}

// The same for the weights, and then for the graph.
inline void RehashAll(std::vector<uint8_t>* file) {
  const size_t begin = static_cast<size_t>(LoadU64(*file, 16)), bytes = static_cast<size_t>(LoadU64(*file, 24));
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(file->data() + begin, bytes));
  std::memcpy(file->data() + 48, canonical.digest, sizeof(canonical.digest));
  Rehash(file);
}

}  // namespace tarn::test

#endif  // TARN_TESTS_SUPPORT_MODELS_H_
