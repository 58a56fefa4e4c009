// What a session promises, on small random models of every family: the same logits however the tokens are fed, exact memory, clean
// refusals.
#include "runtime/session/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/models.h"

namespace tarn {
namespace {

using Tokens = std::vector<int32_t>;
using Logits = std::vector<float>;

struct Case {
  std::string name;
  std::string config;
  convert::Precision precision;
};

std::vector<Case> Cases() {
  using test::ConfigText;
  const std::string hybrid = std::string("[") + test::kRfa + ", " + test::kAbc + "]";
  std::vector<Case> cases = {
      {"rfa", ConfigText(test::kRfa, "none"), convert::Precision::kF32},
      {"rfa_int8", ConfigText(test::kRfa, "sinusoidal"), convert::Precision::kInt8},
      {"arccos", ConfigText(test::kArccos), convert::Precision::kF32},
      {"abc", ConfigText(test::kAbc), convert::Precision::kF32},
      {"abc_int8", ConfigText(test::kAbc, "none"), convert::Precision::kInt8},
      {"abc_relu", ConfigText(test::kAbcRelu, "none"), convert::Precision::kF32},
      {"softmax", ConfigText(test::kSoftmax), convert::Precision::kF32},
      {"hybrid", ConfigText(hybrid), convert::Precision::kF32},
      {"rfa_int4", ConfigText(test::kRfa, "sinusoidal"), convert::Precision::kInt4},
      {"rfa_f16", ConfigText(test::kRfa, "sinusoidal"), convert::Precision::kF16},
  };
  for (const test::SystemCase& system : test::kMoreSystems) {
    cases.push_back({system.name, ConfigText(system.attention, "none", system.heads), convert::Precision::kF32});
  }
  for (const CachePolicyInfo& policy : kCachePolicies) {
    if ((policy.forms & kCausalForm) == 0) continue;
    cases.push_back({std::string("policy_") + policy.name, ConfigText(test::WithPolicy(policy), "none", test::kPlainHeads),
                     convert::Precision::kF32});
  }
  return cases;
}

class Harness {
 public:
  explicit Harness(const Case& c, bool portable = false, const char* isa = nullptr, format::DType state = format::DType::F32)
      : file_(test::MakeModel(c.config, c.precision, state)) {
    const LoadOptions options{Verify::kEveryTime, isa, portable, DefaultAllocator()};
    Result<LoadedModel> loaded = LoadedModel::Open(FileMap(), {file_.data(), file_.size()}, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    model_ = std::make_unique<LoadedModel>(std::move(loaded.value()));
    const Status packed = model_->Pack();
    EXPECT_TRUE(packed.ok()) << packed.message();
  }
  ~Harness() {
    for (Session* session : sessions_) Session::Destroy(session);
  }

  const LoadedModel& model() const { return *model_; }
  size_t vocab() const { return model_->model().graph().vocab_size(); }

  Session* New(const Limits& limits) {
    Result<Session*> session = Session::Create(*model_, limits, {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    sessions_.push_back(session.value());
    return session.value();
  }

  // Logits of every sequence after the last token.
  Logits Feed(Session* session, const Tokens& tokens) {
    const size_t batch = session->instance().limits().batch;
    const Result<const float*> logits = session->Prefill(tokens.data(), tokens.size() / batch);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return Logits(logits.value(), logits.value() + batch * vocab());
  }

 private:
  std::vector<uint8_t> file_;
  std::unique_ptr<LoadedModel> model_;
  std::vector<Session*> sessions_;
};

Tokens RandomTokens(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Tokens tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 256);
  return tokens;
}

float Distance(const Logits& a, const Logits& b) {
  float distance = 0;
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    distance = std::max(distance, std::fabs(a[i] - b[i]));
    largest = std::max(largest, std::fabs(b[i]));
  }
  return distance / largest;
}

// Chunked and stepwise sums differ by f32 rounding, 2 layers deep; so may those of one row and of many rows in a dense layer (on
// ARM they do). The delta rule with DPFP divides by sums of few features and magnifies that: its token loops on two instruction
// sets of x86, dense layers by XNNPACK or ours, are up to 6.1e-5 apart (every other system: at most 1.1e-5). With int8, a rounding
// difference in an activation can move its quantized value by one step of 1/255 of the row's range.
float Tolerance(const Case& c) {
  if (c.precision != convert::Precision::kF32) return 2e-2f;
  return c.config.find("\"delta_rule\"") != std::string::npos ? 1.2e-4f : 2e-5f;
}

class SessionTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Families, SessionTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& c) { return c.param.name; });

TEST_P(SessionTest, ChunksAndStepsAgree) {
  Harness harness(GetParam());
  const Tokens tokens = RandomTokens(130, 1);
  Session* stepper = harness.New({1, 1, 1, 1});
  Logits want;
  for (const int32_t token : tokens) want = harness.Feed(stepper, {token});
  for (const uint32_t chunk : {2u, 7u, 64u, 130u}) {
    EXPECT_LE(Distance(harness.Feed(harness.New({1, chunk, 1, 1}), tokens), want), Tolerance(GetParam())) << chunk;
  }
}

TEST_P(SessionTest, ScoringGivesTheLogitsOfEveryToken) {
  Harness harness(GetParam());
  const Tokens tokens = RandomTokens(20, 2);
  Session* scorer = harness.New({1, 20, 20, 1});
  const Result<const float*> scored = scorer->Score(tokens.data(), tokens.size());
  ASSERT_TRUE(scored.ok());
  Session* stepper = harness.New({1, 1, 1, 1});
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* row = scored.value() + i * harness.vocab();
    EXPECT_LE(Distance(Logits(row, row + harness.vocab()), harness.Feed(stepper, {tokens[i]})), Tolerance(GetParam())) << i;
  }
}

TEST_P(SessionTest, SequencesInLockstepAreIndependent) {
  Harness harness(GetParam());
  const size_t length = 40;
  const Tokens a = RandomTokens(length, 3);
  const Tokens b = RandomTokens(length, 4);
  Tokens both = a;
  both.insert(both.end(), b.begin(), b.end());
  const Logits together = harness.Feed(harness.New({2, 16, 1, 1}), both);
  const Logits alone_a = harness.Feed(harness.New({1, 16, 1, 1}), a);
  const Logits alone_b = harness.Feed(harness.New({1, 16, 1, 1}), b);
  const auto vocab = static_cast<std::ptrdiff_t>(harness.vocab());
  EXPECT_LE(Distance(Logits(together.begin(), together.begin() + vocab), alone_a), Tolerance(GetParam()));
  EXPECT_LE(Distance(Logits(together.begin() + vocab, together.end()), alone_b), Tolerance(GetParam()));
}

TEST_P(SessionTest, ResetForgetsEverything) {
  Harness harness(GetParam());
  Session* session = harness.New({1, 16, 1, 1});
  const Tokens few = RandomTokens(3, 5);
  const Logits first = harness.Feed(session, few);
  harness.Feed(session, RandomTokens(30, 6));
  EXPECT_EQ(session->instance().tokens_seen(), 33u);
  EXPECT_NE(harness.Feed(session, few), first);
  session->Reset();
  EXPECT_EQ(session->instance().tokens_seen(), 0u);
  EXPECT_EQ(harness.Feed(session, few), first);  // bit for bit
}

TEST_P(SessionTest, ThreadsDoNotChangeABit) {
  Harness harness(GetParam());
  const Tokens tokens = RandomTokens(70, 6);
  const Logits one = harness.Feed(harness.New({1, 32, 1, 1}), tokens);
  EXPECT_EQ(harness.Feed(harness.New({1, 32, 1, 2}), tokens), one);
  EXPECT_EQ(harness.Feed(harness.New({1, 32, 1, 4}), tokens), one);
}

TEST_P(SessionTest, EveryKernelSetAndBothDenseSidesAgree) {
  const Tokens tokens = RandomTokens(50, 7);
  Harness best(GetParam());
  const Logits want = best.Feed(best.New({1, 16, 1, 1}), tokens);
  for (const char* isa : KernelNames()) {
    for (const bool portable : {false, true}) {
      Harness harness(GetParam(), portable, isa);
      EXPECT_LE(Distance(harness.Feed(harness.New({1, 16, 1, 1}), tokens), want), Tolerance(GetParam())) << isa << portable;
    }
  }
}

struct AlignedBlock {
  explicit AlignedBlock(size_t bytes) : size(bytes) { EXPECT_EQ(posix_memalign(&data, 64, bytes), 0); }
  ~AlignedBlock() { std::free(data); }
  AlignedBlock(const AlignedBlock&) = delete;
  Span<uint8_t> span(size_t bytes) const { return {static_cast<uint8_t*>(data), bytes}; }
  void* data = nullptr;
  size_t size;
};

TEST_P(SessionTest, TheReportedBytesAreEnoughAndOneLessIsNot) {
  Harness harness(GetParam());
  for (const Limits& limits : {Limits{1, 1, 1, 1}, Limits{1, 64, 1, 1}, Limits{3, 17, 5, 2}}) {
    const Result<ProgramBytes> bytes = Session::Measure(harness.model(), limits);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const ProgramBytes& b = bytes.value();
    EXPECT_EQ(b.total, b.state + b.arena + b.scratch + b.program);
    const size_t total = static_cast<size_t>(b.total);
    const AlignedBlock block(total);

    const Result<Session*> session = Session::Create(harness.model(), limits, block.span(total));
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Tokens tokens = RandomTokens(40 * limits.batch, 8);
    EXPECT_TRUE(session.value()->Prefill(tokens.data(), 40).ok());
    Session::Destroy(session.value());

    const Result<Session*> refused = Session::Create(harness.model(), limits, block.span(total - 1));
    EXPECT_EQ(refused.status().code(), TARN_BUFFER_TOO_SMALL);
    const std::string words = refused.status().message();
    EXPECT_NE(words.find(std::to_string(total)), std::string::npos) << words;
    EXPECT_NE(words.find(std::to_string(total - 1)), std::string::npos) << words;
  }
}

TEST_P(SessionTest, EverySmallerBlockIsRefusedCleanly) {
  Harness harness(GetParam());
  const Limits limits{1, 4, 1, 1};
  const size_t total = static_cast<size_t>(Session::Measure(harness.model(), limits).value().total);
  const AlignedBlock block(total);
  for (size_t bytes = 0; bytes < total; bytes += 64 + bytes / 7) {
    EXPECT_EQ(Session::Create(harness.model(), limits, block.span(bytes)).status().code(), TARN_BUFFER_TOO_SMALL) << bytes;
  }
}

TEST_P(SessionTest, WrongTokensAreNamedAndFeedNothing) {
  Harness harness(GetParam());
  Session* session = harness.New({1, 8, 1, 1});
  const Tokens good = RandomTokens(10, 9);
  const Logits want = harness.Feed(session, good);
  session->Reset();
  harness.Feed(session, Tokens(good.begin(), good.begin() + 5));
  const Tokens bad = {1, 2, 256};
  const Result<const float*> refused = session->Prefill(bad.data(), bad.size());
  EXPECT_EQ(refused.status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(refused.status().message(), "token 2 is 256, 0 to 255 expected");
  EXPECT_FALSE(session->Prefill(bad.data(), 0).ok());
  const Tokens negative = {-1};
  EXPECT_FALSE(session->Prefill(negative.data(), 1).ok());
  EXPECT_EQ(session->instance().tokens_seen(), 5u);
  EXPECT_EQ(Distance(harness.Feed(session, Tokens(good.begin() + 5, good.end())), want) <= Tolerance(GetParam()), true);
}

TEST(Session, AFullCacheIsAnErrorAndNeverGrows) {
  Harness harness(Cases()[6]);
  Session* session = harness.New({1, 64, 1, 1});
  EXPECT_EQ(session->instance().program(Stage::kDecode)->bound().tokens, 150u);
  const Tokens tokens = RandomTokens(151, 10);
  EXPECT_EQ(session->Prefill(tokens.data(), 151).status().code(), TARN_CONTEXT_FULL);
  EXPECT_EQ(session->instance().tokens_seen(), 0u);
  EXPECT_TRUE(session->Prefill(tokens.data(), 150).ok());
  const Status full = session->Prefill(tokens.data(), 1).status();
  EXPECT_EQ(full.code(), TARN_CONTEXT_FULL);
  EXPECT_NE(std::string(full.message()).find("150"), std::string::npos) << full.message();
  session->Reset();
  EXPECT_TRUE(session->Prefill(tokens.data(), 150).ok());
}

// phi(q) = relu(W scale q/|q| + b): the norm comes before T2R's q_input_scale, and would all but cancel it the other way round.
// Under a guard that always fires, o is proportional to phi(q), and so to the scale.
TEST(Session, TheNormOfT2rComesBeforeItsInputScale) {
  const auto logits = [](const char* scale) {
    const std::string attention =
        std::string(R"({"system": "t2r", "num_features": 6, "normalize_qk": true, "den_eps": 100, "q_input_scale": )") + scale +
        "}";
    Harness harness({"t2r", test::ConfigText(attention, "none"), convert::Precision::kF32});
    return harness.Feed(harness.New({1, 1, 1, 1}), {1, 2, 3, 4, 5});
  };
  EXPECT_GT(Distance(logits("1"), logits("64")), 0.1f);
}

// A loop of steps inside one call rounds its state as single steps do.
TEST(Session, HalfPrecisionStateIsRoundedAtEveryStep) {
  const std::string config = test::ConfigText(R"({"system": "gla"})", "none");
  Harness harness({"gla", config, convert::Precision::kF32}, /*portable=*/true, "reference", format::DType::F16);
  const Tokens tokens = RandomTokens(20, 12);
  Session* stepper = harness.New({1, 1, 1, 1});
  Logits want;
  for (const int32_t token : tokens) want = harness.Feed(stepper, {token});
  EXPECT_LE(Distance(harness.Feed(harness.New({1, 20, 1, 1}), tokens), want), 1e-6f);
}

TEST(Session, LearnedPositionsEndWithTheirTable) {
  std::string config = test::ConfigText(test::kRfa, "learned");
  config.insert(1, R"("max_positions": 40, "first_position": 2, )");
  Harness harness({"learned", config, convert::Precision::kF32});
  Session* session = harness.New({1, 64, 1, 1});
  const Tokens tokens = RandomTokens(39, 11);
  EXPECT_EQ(session->Prefill(tokens.data(), 39).status().code(), TARN_CONTEXT_FULL);
  EXPECT_TRUE(session->Prefill(tokens.data(), 38).ok());
}

// XNNPACK looks at these scales itself, and knows no names.
void ExpectNamedScales(convert::Precision precision, std::initializer_list<uint16_t> bad_scales) {
  std::vector<uint8_t> file = test::MakeModel(Cases()[0].config, precision);
  const Result<Model> good = Model::Open(FileMap(), {file.data(), file.size()}, DefaultAllocator());
  ASSERT_TRUE(good.ok());
  for (uint32_t i = 0; i < good.value().graph().tensors()->size(); ++i) {
    const TensorView view = good.value().tensor(i);
    if (view.block_scales == nullptr) continue;
    for (const uint16_t bad : bad_scales) {
      const uint16_t saved = *view.block_scales;
      const size_t at = static_cast<size_t>(reinterpret_cast<const uint8_t*>(view.block_scales) - file.data());
      std::memcpy(&file[at], &bad, sizeof(bad));
      for (const bool portable : {false, true}) {
        const LoadOptions options{Verify::kNever, nullptr, portable, DefaultAllocator()};
        const Status status = LoadedModel::Open(FileMap(), {file.data(), file.size()}, options).status();
        EXPECT_EQ(status.code(), TARN_BAD_FORMAT) << status.message();
        EXPECT_NE(std::strstr(status.message(), view.name), nullptr) << status.message();
      }
      std::memcpy(&file[at], &saved, sizeof(saved));
    }
  }
}

TEST(Session, ScalesOfBlocksAreNamedOnBothSides) {
  ExpectNamedScales(convert::Precision::kInt4, {0x0000, 0x0001, 0x7F80, 0x7FC0, 0xBF80});
  ExpectNamedScales(convert::Precision::kInt3, {0x0000, 0x0001, 0x8001, 0x7F80, 0xFF80, 0x7FC0});  // those below 0 are good
  ExpectNamedScales(convert::Precision::kInt2, {0x0000, 0x0001, 0x7F80, 0x7FC0, 0xBF80});
}

#if defined(__SSE__)
// A row of S whose feature no key has decays for ever: it must become 0, not stay among the denormals, where x86 is slow.
TEST(Session, StatesLeaveNoDenormals) {
  const std::string gated = R"({"system": "rfa", "feature_map": "arccos", "num_features": 24, "gate": "forget"})";
  Harness harness({"gated", test::ConfigText(gated, "none"), convert::Precision::kF32});
  Session* session = harness.New({1, 1, 1, 1});
  harness.Feed(session, RandomTokens(1, 3));
  const StateBuffer& state = session->instance().state(0);
  float* s = state.f32(0);
  const size_t count = static_cast<size_t>(state.bytes_per_sequence / sizeof(float));
  std::fill(s, s + count, 1e-40f);
  harness.Feed(session, RandomTokens(1, 4));
  EXPECT_EQ(std::count_if(s, s + count, [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; }), 0);
  EXPECT_GT(std::count(s, s + count, 0.0f), 0);  // relu leaves features that no key has
}
#endif

TEST(Session, LimitsOutOfRangeAreNamed) {
  Harness harness(Cases()[0]);
  for (const Limits& limits : {Limits{0, 1, 1, 1}, Limits{1u << 20, 1, 1, 1}, Limits{1, 1u << 20, 1, 1}, Limits{1, 4, 5, 1},
                               Limits{1, 1, 1, 1, 1, 7}, Limits{1, 1, 1, 1, 0}, Limits{1, 1, 1, 0}, Limits{1, 1, 1, 1000}}) {
    EXPECT_EQ(Session::Create(harness.model(), limits, {}).status().code(), TARN_INVALID_ARGUMENT);
  }
}

TEST(Session, StateIsTheFormulaPlusTheCounter) {
  Harness harness(Cases()[0]);
  // 2 layers x 2 kv heads x 2D(dv + 1), D = 8, dv = 12 (MATH 4.1); S and z each end on a multiple of 64 bytes; 64 bytes of counter.
  const uint64_t layer = AlignUp(2 * 16 * 12 * 4) + AlignUp(2 * 16 * 4);
  EXPECT_EQ(Session::Measure(harness.model(), {1, 64, 1, 1}).value().state, 64 + 2 * layer);
  EXPECT_EQ(Session::Measure(harness.model(), {1, 1, 1, 1}).value().state, 64 + 2 * layer);
}

}  // namespace
}  // namespace tarn
