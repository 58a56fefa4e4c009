#include "tools/convert/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/checkpoint/other_format.h"
#include "tools/convert/config/config.h"
#include "tools/convert/writer/model_writer.h"

namespace tarn::convert {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() : tensors_(RandomCheckpoint(SmallConfig(), 1)) { folder_.Write("config.json", SmallConfig().dump()); }

  TestTensor& Find(const std::string& name) {
    for (TestTensor& tensor : tensors_) {
      if (tensor.name == name) return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors_[0];
  }

  void Save() { folder_.Write("model.safetensors", SafetensorsBytes(tensors_)); }

  // The whole way of the tool, into memory.
  std::vector<uint8_t> Convert(Precision precision = Precision::kF32) {
    const Checkpoint checkpoint(folder_.path());
    GraphBuilder builder(precision);
    BuildModel(ParseConfig(checkpoint.config().text, "config.json"), &builder);
    checkpoint.Check(builder.weights(), builder.tied());
    MemorySink sink;
    WriteModel(builder.graph(), checkpoint, &sink);
    return sink.bytes();
  }

  // The lines about tensors that do not fit.
  std::vector<std::string> Report() {
    try {
      Convert();
    } catch (const ConvertError& error) {
      return error.details();
    }
    return {};
  }

  TestFolder folder_;
  std::vector<TestTensor> tensors_;
};

TEST_F(CheckpointTest, Converts) {
  Save();
  EXPECT_GT(Convert().size(), 16384u);
}

TEST_F(CheckpointTest, MissingTensor) {
  Find("model.norm.weight").name = "model.norms.weight";
  Save();
  EXPECT_EQ(Report(), (std::vector<std::string>{R"("model.norm.weight": missing, expected [8])",
                                                R"("model.norms.weight": unknown, found F32 [8] in model.safetensors)"}));
}

TEST_F(CheckpointTest, ANameWithAnotherPrefixNamesTheExpectedOne) {
  Find("model.norm.weight").name = "norm.weight";
  Find("model.embeddings.weight").name = "module.model.embeddings.weight";
  Save();
  const std::vector<std::string> lines = Report();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1].rfind("\"model.norm.weight\": missing", 0), 0u) << lines[1];
  EXPECT_NE(lines[2].find("in model.safetensors; the expected name is \"model.embeddings.weight\""), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find("in model.safetensors; the expected name is \"model.norm.weight\""), std::string::npos) << lines[3];
}

TEST_F(CheckpointTest, MisshapedTensor) {
  Find("model.layers.1.attn.sigma").shape = {4};
  Save();
  EXPECT_EQ(Report(),
            (std::vector<std::string>{R"("model.layers.1.attn.sigma": found F32 [4] in model.safetensors, expected [2, 2])"}));
}

TEST_F(CheckpointTest, IntegerTensor) {
  Find("model.norm.weight").dtype = "I32";
  Save();
  EXPECT_EQ(
      Report(),
      (std::vector<std::string>{R"("model.norm.weight": found I32 [8] in model.safetensors, expected F32, F16 or BF16 [8])"}));
}

TEST_F(CheckpointTest, EverythingThatDoesNotFitIsInOneReport) {
  Find("model.norm.weight").name = "a\nname";
  Find("model.layers.1.attn.sigma").shape = {4};
  Find("model.layers.0.attn_norm.weight").dtype = "I32";
  tensors_.push_back(FloatTensor("zzz", {1, 2}, {1, 2}));
  Save();
  EXPECT_TRUE(FailsWith([&] { Convert(); },
                        {folder_.path() + ": 5 tensors do not fit config.json (missing: 1, different: 2, unknown: 2)"}));
  const std::vector<std::string> lines = Report();
  ASSERT_EQ(lines.size(), 5u);
  const char* names[] = {R"("a\nname")", R"("model.layers.0.attn_norm.weight")", R"("model.layers.1.attn.sigma")",
                         R"("model.norm.weight")", R"("zzz")"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(lines[i].rfind(names[i], 0), 0u) << lines[i];
}

TEST_F(CheckpointTest, AReportOfManyTensorsEndsWithTheirNumber) {
  for (int i = 100; i < 200; ++i) tensors_.push_back(FloatTensor("extra." + std::to_string(i), {}, {1}));
  Save();
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"100 tensors do not fit"}));
  const std::vector<std::string> lines = Report();
  ASSERT_EQ(lines.size(), 51u);
  EXPECT_EQ(lines[49].rfind("\"extra.149\"", 0), 0u);
  EXPECT_EQ(lines[50], "... and 50 more");
}

// The head that config.json ties to the embeddings, saved all the same.
TEST_F(CheckpointTest, TiedHead) {
  Save();
  const std::vector<uint8_t> expected = Convert();
  TestTensor head = Find("model.embeddings.weight");
  head.name = "lm_head.weight";
  tensors_.push_back(head);
  Save();
  EXPECT_EQ(Convert(), expected);

  const float other = 1234.5f;
  std::memcpy(&tensors_.back().bytes[4 * 11], &other, sizeof(other));
  Save();
  EXPECT_TRUE(
      FailsWith([&] { Convert(); }, {"1 tensor does not fit", "\"lm_head.weight\": found 1234.5 at [1, 3] in model.safetensors",
                                     "where model.embeddings.weight has ", "\"tie_word_embeddings\": false"}));
  // Numbers are compared, whatever they are stored as: these 16 bits are another number than the embeddings have.
  tensors_.back() = {"lm_head.weight", "BF16", head.shape, std::string(head.bytes.size() / 2, '\x01')};
  Save();
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"\"lm_head.weight\"", "at [0, 0]"}));
  tensors_.back() = head;
  tensors_.back().shape = {head.shape[0] * head.shape[1]};
  Save();
  EXPECT_TRUE(
      FailsWith([&] { Convert(); }, {"\"lm_head.weight\": found F32 [80]", "expected the values of model.embeddings.weight"}));
  // Where the embeddings are missing, that is what is wrong.
  tensors_.back() = head;
  Find("model.embeddings.weight").name = "embeddings";
  Save();
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"missing: 1, different: 0, unknown: 1", "\"model.embeddings.weight\": missing"}));
}

TEST_F(CheckpointTest, ValuesThatAreNotFinite) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()};
  const char* names[] = {"model.layers.0.mlp.up_proj.weight", "model.layers.0.attn.random_matrix", "model.norm.weight"};
  const char* indices[] = {"[1, 3]", "[0, 1, 1]", "[3]"};
  const size_t flat[] = {11, 3, 3};
  for (size_t i = 0; i < 3; ++i) {
    TestTensor& tensor = Find(names[i]);
    const std::string before = tensor.bytes;
    std::memcpy(&tensor.bytes[flat[i] * sizeof(float)], &bad[i], sizeof(float));
    Save();
    for (const Precision precision : {Precision::kF32, Precision::kInt8}) {
      EXPECT_TRUE(FailsWith([&] { Convert(precision); }, {names[i], indices[i]}));
    }
    tensor.bytes = before;
  }
}

TEST_F(CheckpointTest, ProductThatIsNotFinite) {
  for (const char* name : {"model.layers.0.attn.random_matrix", "model.layers.0.attn.sigma"}) {
    const float huge = 1e30f;
    std::memcpy(&Find(name).bytes[0], &huge, sizeof(huge));
  }
  Save();
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"\"model.layers.0.attn.projection\"", "inf"}));
}

// The same numbers, stored in two shards or in 16 bits, give the same file.
TEST_F(CheckpointTest, Shards) {
  Save();
  const std::vector<uint8_t> whole = Convert();
  std::filesystem::remove(folder_.File("model.safetensors"));

  Json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  std::vector<TestTensor> shards[2];
  for (size_t i = 0; i < tensors_.size(); ++i) {
    shards[i % 2].push_back(tensors_[i]);
    index["weight_map"][tensors_[i].name] = i % 2 == 0 ? "model-1.safetensors" : "model-2.safetensors";
  }
  folder_.Write("model-1.safetensors", SafetensorsBytes(shards[0]));
  folder_.Write("model-2.safetensors", SafetensorsBytes(shards[1]));
  folder_.Write("model.safetensors.index.json", index.dump());
  EXPECT_EQ(Convert(), whole);

  Json wrong = index;
  wrong["weight_map"][tensors_[0].name] = "model-2.safetensors";
  folder_.Write("model.safetensors.index.json", wrong.dump());
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"model-1.safetensors", tensors_[0].name}));

  wrong = index;
  wrong["weight_map"]["ghost"] = "model-2.safetensors";
  folder_.Write("model.safetensors.index.json", wrong.dump());
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"model-2.safetensors", "\"ghost\""}));

  wrong["weight_map"]["ghost"] = "../elsewhere.safetensors";
  folder_.Write("model.safetensors.index.json", wrong.dump());
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"\"ghost\"", "../elsewhere.safetensors", "not the name of a file"}));

  folder_.Write("model.safetensors.index.json", R"({"metadata": {}})");
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"weight_map"}));

  shards[1].push_back(tensors_[0]);
  folder_.Write("model-2.safetensors", SafetensorsBytes(shards[1]));
  folder_.Write("model.safetensors.index.json", index.dump());
  EXPECT_TRUE(FailsWith([&] { Convert(); }, {"model-2.safetensors", tensors_[0].name, "also in model-1.safetensors"}));
}

TEST_F(CheckpointTest, HalfPrecisionTensors) {
  std::vector<TestTensor> half = tensors_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    // Cut to the upper 16 bits, which is BF16; the F32 copy holds the same numbers.
    half[i].dtype = "BF16";
    half[i].bytes.clear();
    for (size_t at = 0; at < tensors_[i].bytes.size(); at += 4) {
      tensors_[i].bytes[at] = tensors_[i].bytes[at + 1] = '\0';
      half[i].bytes += tensors_[i].bytes.substr(at + 2, 2);
    }
  }
  Save();
  const std::vector<uint8_t> expected = Convert();
  tensors_ = half;
  Save();
  EXPECT_EQ(Convert(), expected);
}

TEST(Checkpoint, FilesThatAreNotThere) {
  const TestFolder folder;
  EXPECT_TRUE(FailsWith([&] { Checkpoint{folder.path()}; }, {"config.json", "No such file"}));
  folder.Write("config.json", "{}");
  EXPECT_TRUE(FailsWith([&] { Checkpoint{folder.path()}; },
                        {"has no weights: neither model.safetensors nor model.safetensors.index.json, nor a .bin or .pt file"}));
  const std::pair<const char*, std::string> others[] = {
      {"z.onnx", "z.onnx is an ONNX file, expected safetensors or a file of torch.save(): take the checkpoint"},
      {"tf_model.h5", "tf_model.h5 is a TensorFlow checkpoint, expected safetensors or a file of torch.save(): load it with"},
      {"model.gguf", "model.gguf is a GGUF file, expected safetensors or a file of torch.save(): take the checkpoint"},
      {"flax_model.msgpack", "flax_model.msgpack is a Flax checkpoint"}};
  for (const auto& [file, words] : others) {  // the first one by name is named
    folder.Write(file, "");
    EXPECT_TRUE(FailsWith([&] { Checkpoint{folder.path()}; }, {"nor a .bin or .pt file; " + words}));
    EXPECT_EQ(OtherFormat(folder.path() + "/" + file).find(words), 0u);
  }
  EXPECT_EQ(OtherFormat(folder.path() + "/config.json"), "");
  EXPECT_EQ(OtherFormat(folder.path() + "/nosuch.gguf"), "");
  for (const char* file : {"c.pt", "b.pth", "a.ckpt", "pytorch_model.bin"}) {
    EXPECT_FALSE(IsTorchFile(folder.File(file)));
    folder.Write(file, "");
    EXPECT_TRUE(IsTorchFile(folder.File(file)));
    const bool alone = std::string(file) == "c.pt" || std::string(file) == "pytorch_model.bin";
    EXPECT_TRUE(
        FailsWith([&] { Checkpoint{folder.path()}; }, {alone ? file : "which of them is the model?", alone ? "0 bytes" : ""}));
  }
  folder.Write("model.safetensors", "");
  EXPECT_TRUE(FailsWith([&] { Checkpoint{folder.path()}; }, {"model.safetensors", "0 bytes are too few"}));
  folder.Write("model.safetensors.index.json", "{}");
  EXPECT_TRUE(FailsWith([&] { Checkpoint{folder.path()}; }, {"has both"}));
}

}  // namespace
}  // namespace tarn::convert
