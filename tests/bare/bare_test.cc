// The runtime without an operating system, built for this machine: models from memory, memory from the caller, ops of one model.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tarn/tarn.h"

namespace {

std::string Source(const char* path) { return std::string(std::getenv("TARN_SOURCE")) + "/" + path; }

std::vector<char> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void* Take(void*, size_t size_bytes, size_t alignment) {
  void* pointer = nullptr;
  return posix_memalign(&pointer, alignment, size_bytes) == 0 ? pointer : nullptr;
}

void GiveBack(void*, void* pointer, size_t) { std::free(pointer); }

class Bare : public testing::Test {
 protected:
  tarn_status Open(const std::string& path) {
    bytes_ = Read(Source(path.c_str()));
    tarn_source source = TARN_SOURCE_INIT;
    source.buffer = bytes_.data();
    source.length_bytes = bytes_.size();
    return tarn_model_open(&source, &config_, &model_, &error_);
  }
  void TearDown() override { tarn_model_close(model_); }

  tarn_model_config config_ = [] {
    tarn_model_config config = TARN_MODEL_CONFIG_INIT;
    config.allocator = {Take, GiveBack, nullptr};
    return config;
  }();
  tarn_model* model_ = nullptr;
  tarn_error error_{};
  std::vector<char> bytes_;
};

constexpr char kModel[] = "examples/bare_metal/shakespeare-tiny-int8.tarn";

TEST_F(Bare, HasTheTokenizerOfBytesAlone) {
  ASSERT_EQ(Open("tests/data/v1.3.tarn"), TARN_UNSUPPORTED);
  EXPECT_STREQ(error_.message,
               "this build has no tokenizer but that of bytes, and the model has another: convert it with \"tokenizer\": "
               "\"none\", and pass token ids");
}

TEST_F(Bare, HasOneTableOfKernels) {
#if defined(__ARM_FEATURE_DSP)
  EXPECT_STREQ(tarn_isa_name(0), "dsp");  // which ARMv7-A has too
#else
  EXPECT_STREQ(tarn_isa_name(0), "scalar");
#endif
  EXPECT_EQ(tarn_isa_name(1), nullptr);
  EXPECT_EQ(tarn_fast_cores(), 1u);
  EXPECT_EQ(tarn_default_threads(), 1u);
}

TEST_F(Bare, RunsAModelOfItsOps) {
  ASSERT_EQ(Open(kModel), TARN_OK) << error_.message;
  tarn_session* session = nullptr;
  ASSERT_EQ(tarn_session_create(model_, nullptr, &session, &error_), TARN_OK) << error_.message;
  const int32_t tokens[] = {82, 79, 77, 69, 79};
  const float* logits = nullptr;
  EXPECT_EQ(tarn_session_prefill(session, tokens, std::size(tokens), &logits, &error_), TARN_OK) << error_.message;
  tarn_session_destroy(session);
}

TEST_F(Bare, NamesAllOpsThatAreLeftOut) {
  ASSERT_EQ(Open("examples/models/shakespeare-abc-mlp-int8.tarn"), TARN_UNSUPPORTED);
  EXPECT_STREQ(error_.message, "the model has ops that this build leaves out: add AddSinusoid,SlotMemory to TARN_OPS");
}

TEST_F(Bare, NeedsAnAllocator) {
  config_.allocator = {nullptr, nullptr, nullptr};
  ASSERT_EQ(Open(kModel), TARN_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error_.message).find("this build has no heap: set the config's allocator"), std::string::npos)
      << error_.message;
}

TEST_F(Bare, HasNoFiles) {
  tarn_source source = TARN_SOURCE_INIT;
  source.path = "model.tarn";
  EXPECT_EQ(tarn_model_open(&source, &config_, &model_, &error_), TARN_UNSUPPORTED);
  EXPECT_STREQ(error_.message, "model.tarn: this build has no files: set source.buffer");
  source.path = nullptr;
  source.use_fd = 1;
  source.fd = 0;
  EXPECT_EQ(tarn_model_open(&source, &config_, &model_, &error_), TARN_UNSUPPORTED);
  EXPECT_STREQ(error_.message, "fd 0: this build has no files: set source.buffer");
}

// A folder for packed weights is a wish that is not granted.
TEST_F(Bare, HasNoCacheOfPackedWeights) {
  config_.packed_cache = ".";
  ASSERT_EQ(Open(kModel), TARN_OK) << error_.message;
  tarn_memory memory = TARN_MEMORY_INIT;
  ASSERT_EQ(tarn_model_requirements(model_, nullptr, &memory, &error_), TARN_OK) << error_.message;
  EXPECT_EQ(memory.packed_file_bytes, 0u);
  EXPECT_EQ(memory.packed_anonymous_bytes, 0u);
}

}  // namespace
