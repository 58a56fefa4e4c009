// tarn_memory.opening_bytes is what opening takes from the allocator: an allocator of exactly that size opens the model, one byte
// less does not, and says what is missing.
#include <gtest/gtest.h>
#include <tarn/tarn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/models.h"

namespace tarn {
namespace {

// An allocator with a limit, which counts.
struct Capped {
  uint64_t limit = UINT64_MAX;
  uint64_t held = 0;
  uint64_t most = 0;

  tarn_allocator allocator() {
    return {[](void* context, size_t bytes, size_t alignment) -> void* {
              Capped* self = static_cast<Capped*>(context);
              if (bytes > self->limit - self->held) return nullptr;
              void* memory = nullptr;
              if (posix_memalign(&memory, alignment, bytes) != 0) return nullptr;
              self->held += bytes;
              if (self->held > self->most) self->most = self->held;
              return memory;
            },
            [](void* context, void* memory, size_t bytes) {
              static_cast<Capped*>(context)->held -= bytes;
              std::free(memory);
            },
            this};
  }
};

std::vector<uint64_t> NumbersIn(const char* text) {
  std::vector<uint64_t> numbers;
  while (*text != '\0') {
    if (*text >= '0' && *text <= '9') {
      char* end = nullptr;
      numbers.push_back(std::strtoull(text, &end, 10));
      text = end;
    } else {
      ++text;
    }
  }
  return numbers;
}

// The whole, or what was taken and what could not be.
bool SaysHowMuch(const char* message, uint64_t bytes) {
  const std::vector<uint64_t> numbers = NumbersIn(message);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == bytes) return numbers.size() > 1;
    for (size_t j = 0; j < i; ++j) {
      if (numbers[i] + numbers[j] == bytes) return true;
    }
  }
  return false;
}

void ExpectExact(const tarn_source& source, tarn_model_config config) {
  Capped capped;
  config.allocator = capped.allocator();
  tarn_error error;
  tarn_memory memory = TARN_MEMORY_INIT, opened = TARN_MEMORY_INIT;
  ASSERT_EQ(tarn_requirements(&source, &config, nullptr, &memory, &error), TARN_OK) << error.message;
  EXPECT_EQ(capped.held, 0u);

  capped.limit = memory.opening_bytes;
  capped.most = 0;
  tarn_model* model = nullptr;
  ASSERT_EQ(tarn_model_open(&source, &config, &model, &error), TARN_OK) << error.message;
  EXPECT_EQ(capped.most, memory.opening_bytes);
  EXPECT_EQ(capped.held, memory.model_bytes + memory.packed_anonymous_bytes);
  capped.limit = UINT64_MAX;  // the answer takes working memory too
  EXPECT_EQ(tarn_model_requirements(model, nullptr, &opened, &error), TARN_OK) << error.message;
  EXPECT_EQ(opened.opening_bytes, memory.opening_bytes);
  tarn_model_close(model);
  EXPECT_EQ(capped.held, 0u);

  capped.limit = memory.opening_bytes - 1;
  model = nullptr;
  EXPECT_EQ(tarn_model_open(&source, &config, &model, &error), TARN_OUT_OF_MEMORY);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(capped.held, 0u);
  EXPECT_TRUE(SaysHowMuch(error.message, memory.opening_bytes)) << memory.opening_bytes << " expected in: " << error.message;
}

constexpr const char* kSeq2Seq = R"({"task": "seq2seq", "vocab_size": 64, "hidden_size": 32, "num_heads": 4,
    "intermediate_size": 48, "hidden_act": "relu", "norm": "layernorm", "norm_eps": 1e-5, "norm_position": "pre",
    "attention_bias": true, "mlp_bias": true, "position_embedding": "sinusoidal", "tokenizer": "none",
    "encoder_layers": 1, "decoder_layers": 2, "share_embeddings": true, "bos_token_id": 0, "eos_token_id": 1,
    "encoder_attention": {"system": "softmax", "max_context": 64},
    "decoder_attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 8},
    "cross_attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 8}})";

TEST(OpeningTest, AnAllocatorOfExactlyTheStatedSizeOpensTheModel) {
  char folder[] = "/tmp/tarn_opening_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string cache = std::string(folder) + "/packed";
  for (const std::string& config_text : {test::ConfigText(test::kRfa), test::ConfigText(test::kSoftmax), std::string(kSeq2Seq)}) {
    for (const convert::Precision precision : {convert::Precision::kF32, convert::Precision::kF16, convert::Precision::kInt8,
                                               convert::Precision::kInt4, convert::Precision::kInt3, convert::Precision::kInt2}) {
      const std::vector<uint8_t> file = test::MakeModel(config_text, precision);
      std::vector<uint8_t> memory(file.size() + 128);
      uint8_t* const aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
      for (const size_t shift : {0, 4, 1}) {  // 4: the graph is copied; 1: the weights too
        std::memmove(aligned + shift, file.data(), file.size());
        tarn_source source = TARN_SOURCE_INIT;
        source.buffer = aligned + shift;
        source.length_bytes = file.size();
        for (const int portable : {0, 1}) {
          tarn_model_config config = TARN_MODEL_CONFIG_INIT;
          config.portable_dense = portable;
          SCOPED_TRACE(std::to_string(static_cast<int>(precision)) + " shift " + std::to_string(shift) +
                       (portable != 0 ? " portable" : ""));
          ExpectExact(source, config);
          config.packed_cache = cache.c_str();
          tarn_model* model = nullptr;
          tarn_error error;
          ASSERT_EQ(tarn_model_open(&source, &config, &model, &error), TARN_OK) << error.message;
          tarn_model_close(model);
          ExpectExact(source, config);  // from the file that is there now
        }
      }
    }
  }
  std::system(("rm -rf " + std::string(folder)).c_str());
}

TEST(OpeningTest, VerifyingAlwaysAndNeverExcludeEachOther) {
  tarn_source source = TARN_SOURCE_INIT;
  source.path = "/nowhere";
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  config.verify_weights = config.no_verify = 1;
  tarn_model* model = nullptr;
  EXPECT_EQ(tarn_model_open(&source, &config, &model, nullptr), TARN_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tarn
