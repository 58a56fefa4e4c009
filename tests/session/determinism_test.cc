// Threads do not change a bit, on models that are large enough for work to be shared: in a smaller one every op stays on the
// caller's thread (ThreadPool::For).
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

// Kinds of blocks, with different pointwise ops. The last has blends, tanh, sigmoids, norms of groups and skips.
constexpr const char* kPlain =
    R"("num_layers": 1, "attention_bias": true, "hidden_act": "relu", "norm": "layernorm", "position_embedding": "sinusoidal")";
constexpr const char* kGated =
    R"("num_layers": 1, "attention_bias": true, "hidden_act": "swiglu", "norm": "rmsnorm", "position_embedding": "rope")";
constexpr const char* kMixed = R"("num_layers": 2, "hidden_act": "relu_squared", "norm": "layernorm", "token_shift": true,
    "value_residual": true, "output_norm": "groups", "output_norm_eps": 1e-5, "output_skip": "products", "output_gate": "linear",
    "output_gate_low_rank": true, "output_gate_rank": 512, "output_gate_hidden_act": "sigmoid")";

struct Case {
  const char* name;
  const char* attention;
  convert::Precision precision;
  const char* block = kPlain;
};

// With 512 features or 256 slots a single token's attention is as much work as is shared at all (2^20 multiply-adds). The softmax
// of a token never is; that of a chunk is.
constexpr const char* kRfa = R"({"system": "rfa", "feature_map": "gaussian", "num_features": 256, "gate": "forget"})";
constexpr const char* kAbc = R"({"system": "abc_mlp", "num_slots": 256})";
constexpr const char* kSoftmax = R"({"system": "softmax", "max_context": 100})";
constexpr const char* kRwkv7 = R"({"system": "rwkv7", "gate_low_rank": true, "gate_rank": 512, "gate_hidden_act": "tanh"})";

std::string WideConfig(const char* attention, const char* block) {
  return std::string(R"({"task": "causal_lm", "vocab_size": 4096, "hidden_size": 1024, "num_heads": 8,
    "intermediate_size": 2048, "norm_eps": 1e-5, "tokenizer": "none", )") +
         block + R"(, "attention": )" + attention + "}";
}

// Tokens of one call after the other.
#if defined(__SANITIZE_THREAD__)  // twenty times as slow
constexpr size_t kCalls[] = {16, 1, 1};
#else
constexpr size_t kCalls[] = {64, 7, 1, 1, 1, 1};
#endif

// Logits after a chunk, after the rest of the prompt and after every one of some steps.
std::vector<float> LogitsWith(const LoadedModel& model, uint32_t threads) {
  const size_t vocab = model.model().graph().vocab_size();
  std::vector<float> all;
  Result<Session*> created = Session::Create(model, {1, 64, 1, threads}, {});
  EXPECT_TRUE(created.ok()) << created.status().message();
  if (!created.ok()) return all;
  Session* session = created.value();
  int32_t next = 1;
  for (const size_t count : kCalls) {
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) token = next = next * 421 % 4093;
    const Result<const float*> logits = session->Prefill(tokens.data(), count);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    if (logits.ok()) all.insert(all.end(), logits.value(), logits.value() + vocab);
  }
  Session::Destroy(session);
  return all;
}

class DeterminismTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Systems, DeterminismTest,
                         testing::Values(Case{"rfa_f32", kRfa, convert::Precision::kF32},
                                         Case{"rfa_int8", kRfa, convert::Precision::kInt8},
                                         Case{"abc_f32", kAbc, convert::Precision::kF32},
                                         Case{"abc_int8", kAbc, convert::Precision::kInt8},
                                         Case{"softmax_f32", kSoftmax, convert::Precision::kF32},
                                         Case{"softmax_int8", kSoftmax, convert::Precision::kInt8},
                                         Case{"softmax_gated_int8", kSoftmax, convert::Precision::kInt8, kGated},
                                         Case{"rwkv7_int8", kRwkv7, convert::Precision::kInt8, kMixed}),
                         [](const testing::TestParamInfo<Case>& c) { return std::string(c.param.name); });

TEST_P(DeterminismTest, OneTwoAndFourThreadsGiveTheSameBits) {
  const std::vector<uint8_t> file = test::MakeModel(WideConfig(GetParam().attention, GetParam().block), GetParam().precision);
  const LoadOptions options{Verify::kOnce, /*isa=*/nullptr, /*portable=*/false, DefaultAllocator()};
  Result<LoadedModel> model = LoadedModel::Open(FileMap(), {file.data(), file.size()}, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_TRUE(model.value().Pack().ok());
  const std::vector<float> one = LogitsWith(model.value(), 1);
  ASSERT_EQ(one.size(), std::size(kCalls) * 4096);
  for (const uint32_t threads : {2u, 4u}) EXPECT_TRUE(LogitsWith(model.value(), threads) == one) << threads << " threads";
}

}  // namespace
}  // namespace tarn
