#include "tests/convert/convert_testing.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/convert/build/model_graph.h"
#include "tools/convert/checkpoint/random_weights.h"
#include "tools/convert/config/config.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

TestFolder::TestFolder() {
  std::string pattern = ::testing::TempDir() + "tarn_convert_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TestFolder::~TestFolder() { std::filesystem::remove_all(path_); }

void TestFolder::Write(const std::string& name, const std::string& bytes) const {
  std::ofstream(File(name), std::ios::binary) << bytes;
}

TestTensor FloatTensor(const std::string& name, const std::vector<uint64_t>& shape, const std::vector<float>& values) {
  return {name, "F32", shape, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

std::string SafetensorsBytes(const std::vector<TestTensor>& tensors, const Json& metadata) {
  Json header = Json::object();
  if (!metadata.is_null()) header["__metadata__"] = metadata;
  std::string data;
  for (const TestTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return SafetensorsBytes(header.dump(), data);
}

Json SmallConfig() {
  return Json::parse(R"({
    "vocab_size": 10, "hidden_size": 8, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "intermediate_size": 12,
    "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5, "attention_bias": true, "mlp_bias": true, "tokenizer": "none",
    "attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 3, "gate": "forget"}})");
}

std::vector<TestTensor> RandomCheckpoint(const Json& config, uint64_t seed) {
  GraphBuilder builder(Precision::kF32);
  BuildModel(ParseConfig(config.dump(), "config.json"), &builder);
  const RandomWeights random(seed);
  std::vector<TestTensor> tensors;
  for (const WeightSpec& spec : builder.weights()) {
    std::vector<float> values(ElementCount(spec.shape));
    random.Read(spec, 0, values.size(), values.data());
    tensors.push_back(FloatTensor(spec.name, {spec.shape.begin(), spec.shape.end()}, values));
  }
  return tensors;
}

::testing::AssertionResult FailsWith(const std::function<void()>& f, const std::vector<std::string>& parts) {
  try {
    f();
  } catch (const ConvertError& error) {
    std::string message = error.what();
    for (const std::string& line : error.details()) message += " " + line;
    for (const std::string& part : parts) {
      if (message.find(part) == std::string::npos) {
        return ::testing::AssertionFailure() << "\"" << message << "\" does not say \"" << part << "\"";
      }
    }
    if (message.find('\n') != std::string::npos) return ::testing::AssertionFailure() << "\"" << message << "\" has several lines";
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace tarn::convert
