// Small models for tests, made in memory by the converter from a config and seeded random weights.
#ifndef TARN_TESTS_SUPPORT_MODELS_H_
#define TARN_TESTS_SUPPORT_MODELS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/convert/causal_lm.h"
#include "tools/convert/config.h"
#include "tools/convert/graph_builder.h"
#include "tools/convert/model_writer.h"
#include "tools/convert/output_file.h"
#include "tools/convert/random_weights.h"

namespace tarn::test {

constexpr const char* kRfa = R"({"system": "rfa", "feature_map": "gaussian", "num_features": 8, "gate": "forget"})";
constexpr const char* kArccos = R"({"system": "rfa", "feature_map": "arccos", "num_features": 24})";
constexpr const char* kAbc = R"({"system": "abc_mlp", "num_slots": 6})";
constexpr const char* kAbcRelu = R"({"system": "abc_mlp", "num_slots": 6, "activation": "relu", "mask_empty": true})";
constexpr const char* kSoftmax = R"({"system": "softmax", "max_context": 150})";

// A language model of 2 layers over bytes, E 32, 4 heads in 2 groups. `attention` is an attention object, or a list of two.
inline std::string ConfigText(const std::string& attention, const std::string& position = "rope") {
  return R"({"task": "causal_lm", "vocab_size": 256, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2,
    "value_head_dim": 12, "intermediate_size": 48, "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5,
    "attention_bias": true, "tokenizer": "bytes", "position_embedding": ")" +
         position + R"(", "attention": )" + attention + "}";
}

inline std::vector<uint8_t> MakeModel(const std::string& config_text, convert::Precision precision = convert::Precision::kF32) {
  const convert::ModelConfig config = convert::ParseConfig(config_text, "test");
  convert::GraphBuilder builder(precision);
  convert::BuildCausalLm(config, &builder);
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

}  // namespace tarn::test

#endif  // TARN_TESTS_SUPPORT_MODELS_H_
