#include "tools/convert/writer/model_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/convert/convert_testing.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/checkpoint/half.h"
#include "tools/convert/checkpoint/random_weights.h"
#include "tools/convert/config/config.h"
#include "tools/convert/graph/quantize.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kSeed = 11;

template <typename T>
T At(const std::vector<uint8_t>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

std::string HashText(const void* bytes, size_t count) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, count));
  return std::string(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest));
}

// A random model of the small config, written and looked at from outside.
class WrittenModel {
 public:
  explicit WrittenModel(const PrecisionRules& rules, const Json& config = SmallConfig()) {
    GraphBuilder builder(rules);
    BuildModel(ParseConfig(config.dump(), "config.json"), &builder);
    builder.graph().name = "small";
    builder.graph().precision = "asked for";
    MemorySink sink;
    sizes = WriteModel(builder.graph(), RandomWeights(kSeed), &sink, [this](uint64_t count) { advanced += count; });
    bytes = sink.bytes();
    for (const WeightSpec& spec : builder.weights()) parameters += ElementCount(spec.shape);
    model = format::GetModel(bytes.data() + 64);
    section = bytes.data() + At<uint64_t>(bytes, 16);
  }

  const format::Tensor& Find(const std::string& name) const {
    for (const format::Tensor* tensor : *model->tensors()) {
      if (tensor->name()->str() == name) return *tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return *model->tensors()->Get(0);
  }

  template <typename T>
  std::vector<T> Data(const format::Tensor& tensor) const {
    size_t count = 1;
    for (const uint32_t dimension : *tensor.shape()) count *= dimension;
    std::vector<T> values(count);
    std::memcpy(values.data(), section + tensor.offset(), count * sizeof(T));
    return values;
  }

  ModelSizes sizes;
  std::vector<uint8_t> bytes;
  const format::Model* model;
  const uint8_t* section;
  uint64_t advanced = 0, parameters = 0;
};

std::vector<float> Weights(const std::string& name, const std::vector<uint32_t>& shape, Init init) {
  std::vector<float> values(ElementCount(shape));
  RandomWeights(kSeed).Read({name, shape, init}, 0, values.size(), values.data());
  return values;
}

TEST(ModelWriter, Header) {
  const WrittenModel file(Precision::kInt8);
  const auto& bytes = file.bytes;
  EXPECT_EQ(std::memcmp(bytes.data(), "TARN\r\n\x1A\n", 8), 0);
  EXPECT_EQ(At<uint16_t>(bytes, 8), 1);
  EXPECT_EQ(At<uint16_t>(bytes, 10), 2);
  const uint64_t graph = At<uint32_t>(bytes, 12), offset = At<uint64_t>(bytes, 16), length = At<uint64_t>(bytes, 24);
  EXPECT_EQ(graph, file.sizes.graph_bytes);
  EXPECT_EQ(offset % 16384, 0u);
  EXPECT_GE(offset, 64 + graph);
  EXPECT_LT(offset, 64 + graph + 16384);
  EXPECT_EQ(length, file.sizes.weight_bytes);
  EXPECT_EQ(bytes.size(), offset + length);
  EXPECT_EQ(bytes.size(), file.sizes.file_bytes);
  for (size_t i = 64 + graph; i < offset; ++i) ASSERT_EQ(bytes[i], 0);

  const std::string hashed(bytes.begin(), bytes.begin() + 32);
  const std::string both = hashed + std::string(bytes.begin() + 64, bytes.begin() + 64 + static_cast<std::ptrdiff_t>(graph));
  EXPECT_EQ(HashText(both.data(), both.size()), std::string(bytes.begin() + 32, bytes.begin() + 48));
  EXPECT_EQ(HashText(bytes.data() + offset, length), std::string(bytes.begin() + 48, bytes.begin() + 64));
}

TEST(ModelWriter, Graph) {
  const WrittenModel file(Precision::kInt8);
  flatbuffers::Verifier verifier(file.bytes.data() + 64, file.sizes.graph_bytes);
  ASSERT_TRUE(format::VerifyModelBuffer(verifier));
  EXPECT_EQ(file.model->required_features(), nullptr);
  EXPECT_EQ(file.model->vocab_size(), 10u);
  EXPECT_EQ(file.model->metadata()->name()->str(), "small");
  EXPECT_EQ(file.model->metadata()->precision()->str(), "asked for");
  EXPECT_EQ(file.model->metadata()->eval_scored(), 0u);
  EXPECT_EQ(file.model->metadata()->source()->str(), SmallConfig().dump());
  uint64_t end = 0;
  for (const format::Tensor* tensor : *file.model->tensors()) {
    EXPECT_EQ(tensor->offset() % 64, 0u);
    EXPECT_GE(tensor->offset(), end);
    uint64_t size = tensor->dtype() == format::DType::I8 ? 1 : 4;
    for (const uint32_t dimension : *tensor->shape()) size *= dimension;
    end = tensor->offset() + size;
  }
  EXPECT_EQ(end, file.sizes.weight_bytes);
}

TEST(ModelWriter, ProgressAddsUp) {
  // sigma is folded away: 2 layers of 2 kv heads of 2.
  const WrittenModel file(Precision::kF32);
  EXPECT_EQ(file.advanced + 8, file.parameters);
}

TEST(ModelWriter, RowsOfSeveralProjectionsFollowEachOther) {
  const WrittenModel file(Precision::kF32);
  const format::Tensor& fused = file.Find("model.layers.1.attn.qkvg_proj.weight");
  std::vector<float> expected;
  const std::pair<const char*, uint32_t> parts[] = {{"q_proj", 8}, {"k_proj", 4}, {"v_proj", 4}, {"g_proj", 2}};
  for (const auto& [name, rows] : parts) {
    const auto part = Weights(std::string("model.layers.1.attn.") + name + ".weight", {rows, 8}, Init::kLinear);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(file.Data<float>(fused), expected);
  std::vector<float> bias(18, 0.0f);
  bias[16] = 1;
  bias[17] = 5;
  EXPECT_EQ(file.Data<float>(file.Find("model.layers.1.attn.qkvg_proj.bias")), bias);
}

// The gate has a bias even where q, k and v have none.
TEST(ModelWriter, BiasOfTheGateAlone) {
  Json config = SmallConfig();
  config["attention_bias"] = false;
  const WrittenModel file(Precision::kF32, config);
  std::vector<float> bias(18, 0.0f);
  bias[16] = 1;
  bias[17] = 5;
  EXPECT_EQ(file.Data<float>(file.Find("model.layers.0.attn.qkvg_proj.bias")), bias);
}

TEST(ModelWriter, QuantizesMatricesAndLeavesTheRest) {
  const WrittenModel file(Precision::kInt8);
  const auto check = [&](const std::string& name, const std::vector<float>& w) {
    const format::Tensor& tensor = file.Find(name);
    ASSERT_EQ(tensor.dtype(), format::DType::I8) << name;
    const auto q = file.Data<int8_t>(tensor);
    const auto scales = file.Data<float>(*file.model->tensors()->Get(static_cast<uint32_t>(tensor.scales())));
    ASSERT_EQ(scales.size(), tensor.shape()->Get(0));
    const size_t columns = tensor.shape()->Get(1);
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_LE(std::fabs(w[i] - scales[i / columns] * static_cast<float>(q[i])), 0.50001f * scales[i / columns]) << name << i;
    }
  };
  check("model.embeddings.weight", Weights("model.embeddings.weight", {10, 8}, Init::kLinear));
  check("model.layers.0.mlp.down_proj.weight", Weights("model.layers.0.mlp.down_proj.weight", {8, 12}, Init::kLinear));
  for (const char* name : {"model.norm.weight", "model.layers.0.attn.projection", "model.layers.0.mlp.down_proj.bias"}) {
    EXPECT_EQ(file.Find(name).dtype(), format::DType::F32) << name;
    EXPECT_EQ(file.Find(name).scales(), -1) << name;
  }
}

// Rows of 32 and 64, so that all matrices can be int4.
Json WideConfig() {
  Json config = SmallConfig();
  config["hidden_size"] = 32;
  config["intermediate_size"] = 64;
  config["head_dim"] = config["value_head_dim"] = 8;
  return config;
}

// A block: its scale, and its bytes.
uint16_t PackedInt4(const float* w, uint8_t* packed) {
  int8_t q[32];
  const uint16_t scale = QuantizeBlock(LevelsOf(format::DType::I4), w, q);
  PackRow(format::DType::I4, q, 32, packed);
  return scale;
}

TEST(ModelWriter, Int4InBlocks) {
  const WrittenModel file(Precision::kInt4, WideConfig());
  const auto check = [&](const std::string& name, const std::vector<uint32_t>& shape) {
    const format::Tensor& tensor = file.Find(name);
    ASSERT_EQ(tensor.dtype(), format::DType::I4) << name;
    const format::Tensor& scales = *file.model->tensors()->Get(static_cast<uint32_t>(tensor.scales()));
    EXPECT_EQ(scales.dtype(), format::DType::BF16);
    EXPECT_EQ(scales.name()->str(), name + ".scales");
    ASSERT_EQ(scales.shape()->size(), 2u);
    EXPECT_EQ(scales.shape()->Get(0), shape[0]);
    EXPECT_EQ(scales.shape()->Get(1), shape[1] / 32);
    const std::vector<float> w = Weights(name, shape, Init::kLinear);
    for (size_t block = 0; block < w.size() / 32; ++block) {
      uint8_t packed[16];
      EXPECT_EQ(At<uint16_t>(file.bytes, At<uint64_t>(file.bytes, 16) + scales.offset() + 2 * block),
                PackedInt4(&w[block * 32], packed));
      EXPECT_EQ(std::memcmp(file.section + tensor.offset() + 16 * block, packed, 16), 0) << name << block;
    }
  };
  check("model.embeddings.weight", {10, 32});
  check("model.layers.0.mlp.down_proj.weight", {32, 64});
  EXPECT_EQ(file.Find("model.norm.weight").dtype(), format::DType::F32);
  EXPECT_EQ(file.advanced + 2 * 2 * 8, file.parameters);  // sigma is folded away
}

// A tensor is read in pieces of 2^18 elements: 9000 rows of 32 are more.
TEST(ModelWriter, PiecesMakeTheWhole) {
  Json config = WideConfig();
  config["vocab_size"] = 9000;
  const std::vector<float> w = Weights("model.embeddings.weight", {9000, 32}, Init::kLinear);
  const WrittenModel int4(Precision::kInt4, config), f16(Precision::kF16, config), int8(Precision::kInt8, config);
  const format::Tensor& blocks = int4.Find("model.embeddings.weight");
  const format::Tensor& scales = *int4.model->tensors()->Get(static_cast<uint32_t>(blocks.scales()));
  const std::vector<uint16_t> found_scales = int4.Data<uint16_t>(scales);
  const std::vector<uint16_t> halves = f16.Data<uint16_t>(f16.Find("model.embeddings.weight"));
  const format::Tensor& rows = int8.Find("model.embeddings.weight");
  const auto row_scales = int8.Data<float>(*int8.model->tensors()->Get(static_cast<uint32_t>(rows.scales())));
  for (size_t row = 0; row < 9000; ++row) {
    uint8_t packed[16];
    ASSERT_EQ(found_scales[row], PackedInt4(&w[row * 32], packed)) << row;
    ASSERT_EQ(std::memcmp(int4.section + blocks.offset() + 16 * row, packed, 16), 0) << row;
    int8_t q[32];
    ASSERT_EQ(row_scales[row], QuantizeRow(&w[row * 32], 32, q)) << row;
    ASSERT_EQ(std::memcmp(int8.section + rows.offset() + 32 * row, q, 32), 0) << row;
    for (size_t i = 0; i < 32; ++i) ASSERT_EQ(halves[row * 32 + i], F16OfFloat(w[row * 32 + i]));
  }
}

std::vector<std::string> Features(const WrittenModel& file) {
  std::vector<std::string> names;
  if (file.model->required_features() == nullptr) return names;
  for (const flatbuffers::String* name : *file.model->required_features()) names.push_back(name->str());
  return names;
}

// Named are those features that a reader of 1.0 lacks, and no others.
TEST(ModelWriter, RequiredFeatures) {
  using Texts = std::vector<std::string>;
  const auto features = [](Precision rest, const std::vector<std::string>& rules, bool tied) {
    PrecisionRules all(rest);
    for (const std::string& rule : rules) all.Keep(rule);
    Json config = WideConfig();
    config["tie_word_embeddings"] = tied;
    return Features(WrittenModel(all, config));
  };
  EXPECT_EQ(features(Precision::kF32, {}, true), Texts{});
  EXPECT_EQ(features(Precision::kInt8, {}, true), Texts{});
  EXPECT_EQ(features(Precision::kInt4, {}, true), Texts{"int4"});
  EXPECT_EQ(features(Precision::kInt8, {"*embeddings*=int4"}, false), Texts{"int4"});
  EXPECT_EQ(features(Precision::kInt3, {}, true), Texts{"int3"});
  EXPECT_EQ(features(Precision::kInt2, {}, true), Texts{"int2"});
  EXPECT_EQ(features(Precision::kF16, {}, true), Texts{"f16_weights"});
  EXPECT_EQ(features(Precision::kInt4, {"lm_head*=f16"}, false), (Texts{"int4", "f16_weights"}));
  EXPECT_EQ(features(Precision::kInt8, {"*embeddings*=f16"}, false), Texts{});  // 1.0 reads such tables
  EXPECT_EQ(features(Precision::kInt8, {"*embeddings*=f16"}, true), Texts{"f16_weights"});
  Json rope = WideConfig();
  rope["position_embedding"] = "rope";
  EXPECT_EQ(Features(WrittenModel(Precision::kF32, rope)), Texts{});
  rope["rope_frequencies"] = std::vector<double>(ParseConfig(rope.dump(), "").heads.head_dim() / 2, 0.5);
  EXPECT_EQ(Features(WrittenModel(Precision::kF32, rope)), Texts{"rope_frequencies"});
}

TEST(ModelWriter, FeaturesOfBlocks) {
  using Texts = std::vector<std::string>;
  const auto features = [](const char* key, const Json& value) {
    Json config = WideConfig();
    config[key] = value;
    return Features(WrittenModel(Precision::kF32, config));
  };
  EXPECT_EQ(features("hidden_act", "swiglu"), Texts{});
  EXPECT_EQ(features("hidden_act", "gelu_tanh"), Texts{});
  for (const char* act : {"geglu", "geglu_tanh", "silu", "relu_squared"}) {
    EXPECT_EQ(features("hidden_act", act), Texts{"activations"}) << act;
  }
  EXPECT_EQ(features("logits_soft_cap", 5.0), Texts{"activations"});
  EXPECT_EQ(features("qk_norm", "head"), Texts{"grouped_norm"});
  EXPECT_EQ(features("qk_norm", "full"), Texts{});
  EXPECT_EQ(features("attention", {{"system", "sliding_window"}, {"window", 4}, {"soft_cap", 2.5}}), Texts{"soft_cap"});
  EXPECT_EQ(features("attention", {{"system", "softmax"}, {"max_context", 4}, {"distance_bias", "layer"}}), Texts{"distance_bias"});
  Json slots = {{"system", "abc_mlp"}, {"num_slots", 4}, {"own_value_control", true}};
  EXPECT_EQ(features("attention", slots), Texts{"value_control"});
  slots["control_input"] = "heads";
  EXPECT_EQ(features("attention", slots), (Texts{"recurrence", "value_control"}));
  Json memory = {
      {"system", "compressive_transformer"}, {"segment_len", 4}, {"mem_len", 4}, {"cmem_len", 4}, {"compression_ratio", 2}};
  EXPECT_EQ(features("attention", memory), Texts{});
  memory["pad"] = "left_remainder";
  EXPECT_EQ(features("attention", memory), Texts{"compression"});
  memory.erase("pad");
  memory["compression"] = "conv";
  EXPECT_EQ(features("attention", memory), Texts{"compression"});
  const std::vector<double> slopes(WideConfig()["num_heads"].get<size_t>(), 0.5);
  EXPECT_EQ(features("attention", {{"system", "sliding_window"}, {"window", 4}, {"distance_slopes", slopes}}),
            Texts{"distance_bias"});
  Json sinusoid = WideConfig();
  sinusoid["position_embedding"] = "sinusoidal";
  sinusoid["sinusoid_frequencies"] = std::vector<double>(sinusoid["hidden_size"].get<size_t>() / 2, 0.5);
  EXPECT_EQ(Features(WrittenModel(Precision::kF32, sinusoid)), Texts{"sinusoid_frequencies"});
}

TEST(ModelWriter, F16EndsSomewhere) {
  class Weights : public WeightReader {
   public:
    explicit Weights(float value) : value_(value) {}
    void Read(const WeightSpec& spec, uint64_t, uint64_t count, float* out) const override {
      std::fill_n(out, count, spec.name == "model.layers.1.mlp.up_proj.weight" ? value_ : 1.0f);
    }
    float value_;
  };
  GraphBuilder builder(Precision::kF16);
  BuildModel(ParseConfig(SmallConfig().dump(), "config.json"), &builder);
  MemorySink sink;
  EXPECT_NO_THROW(WriteModel(builder.graph(), Weights(-65504), &sink));
  EXPECT_TRUE(FailsWith([&] { WriteModel(builder.graph(), Weights(-65505), &sink); },
                        {"\"model.layers.1.mlp.gate_up_proj.weight\"", "-65505", "f16", "65504"}));
}

TEST(ModelWriter, MeasuredLoss) {
  GraphBuilder builder(Precision::kInt8);
  BuildModel(ParseConfig(SmallConfig().dump(), "config.json"), &builder);
  builder.graph().loss = {123, 1.5, 1.625};
  MemorySink sink;
  WriteModel(builder.graph(), RandomWeights(kSeed), &sink);
  const auto* metadata = format::GetModel(sink.bytes().data() + 64)->metadata();
  EXPECT_EQ(metadata->eval_scored(), 123u);
  EXPECT_EQ(metadata->eval_nats_f32(), 1.5);
  EXPECT_EQ(metadata->eval_nats(), 1.625);
}

// sigma * random_matrix with d before D, rounded once.
TEST(ModelWriter, FoldsSigma) {
  Json config = SmallConfig();
  config["num_layers"] = 1;
  const TestFolder folder;
  GraphBuilder builder(Precision::kF32);
  BuildModel(ParseConfig(config.dump(), "config.json"), &builder);
  class Weights : public WeightReader {
   public:
    void Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const override {
      const bool sigma = spec.name == "model.layers.0.attn.sigma";
      for (uint64_t i = 0; i < count; ++i)
        out[i] = sigma ? 0.1f * static_cast<float>(first + i + 1) : static_cast<float>(first + i);
    }
  };
  MemorySink sink;
  WriteModel(builder.graph(), Weights(), &sink);
  const auto* model = format::GetModel(sink.bytes().data() + 64);
  for (const format::Tensor* tensor : *model->tensors()) {
    if (tensor->name()->str() != "model.layers.0.attn.projection") continue;
    ASSERT_EQ(tensor->shape()->size(), 3u);
    const float* data = reinterpret_cast<const float*>(sink.bytes().data() + At<uint64_t>(sink.bytes(), 16) + tensor->offset());
    for (uint32_t h = 0; h < 2; ++h) {
      for (uint32_t i = 0; i < 2; ++i) {
        for (uint32_t f = 0; f < 3; ++f) {
          const double sigma = 0.1f * static_cast<float>(h * 2 + i + 1);
          EXPECT_EQ(data[(h * 2 + i) * 3 + f], static_cast<float>(sigma * ((h * 3 + f) * 2 + i)));
        }
      }
    }
    return;
  }
  FAIL() << "no projection";
}

TEST(ModelWriter, SameInputSameBytes) { EXPECT_EQ(WrittenModel(Precision::kInt8).bytes, WrittenModel(Precision::kInt8).bytes); }

}  // namespace
}  // namespace tarn::convert
