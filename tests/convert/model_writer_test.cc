#include "tools/convert/model_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/convert/convert_testing.h"
#include "tools/convert/causal_lm.h"
#include "tools/convert/config.h"
#include "tools/convert/random_weights.h"

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
  explicit WrittenModel(Precision precision, const Json& config = SmallConfig()) {
    GraphBuilder builder(precision);
    BuildCausalLm(ParseConfig(config.dump(), "config.json"), &builder);
    builder.graph().name = "small";
    builder.graph().precision = precision == Precision::kF32 ? "f32" : "int8";
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
  EXPECT_EQ(At<uint16_t>(bytes, 10), 0);
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
  EXPECT_EQ(file.model->metadata()->precision()->str(), "int8");
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

// sigma * random_matrix with d before D, rounded once.
TEST(ModelWriter, FoldsSigma) {
  Json config = SmallConfig();
  config["num_layers"] = 1;
  const TestFolder folder;
  GraphBuilder builder(Precision::kF32);
  BuildCausalLm(ParseConfig(config.dump(), "config.json"), &builder);
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
