// Sources: exact memory, limits that are said, errors that change nothing, starting anew.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

constexpr char kShape[] = R"("vocab_size": 256, "hidden_size": 32, "num_heads": 4, "intermediate_size": 48, "hidden_act": "relu",
    "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes", "position_embedding": "sinusoidal")";

std::string Seq2Seq(const std::string& cross) {
  return std::string(R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, )") + kShape +
         R"(, "encoder_attention": {"system": "softmax", "max_context": 40}, "cross_attention": )" + cross +
         R"(, "decoder_attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 8, "gate": "forget"}})";
}

std::string Encoder(const std::string& task) {
  return R"({"task": ")" + task + R"(", "num_layers": 1, )" + kShape +
         R"(, "attention": {"system": "linformer", "num_slots": 4, "max_len": 40}})";
}

const std::string kSoftmaxCross = R"({"system": "softmax", "max_context": 40})";
const std::string kAbcCross = R"({"system": "abc_mlp", "num_slots": 4})";

class Encoding : public ::testing::Test {
 protected:
  void Load(const std::string& config) {
    file_ = test::MakeModel(config, convert::Precision::kInt8);
    Result<LoadedModel> model =
        LoadedModel::Open(FileMap(), {file_.data(), file_.size()}, {Verify::kOnce, nullptr, true, DefaultAllocator()});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model.value());
    ASSERT_TRUE(model_.Pack().ok());
  }

  // 2 sources of up to 12 tokens, 3 beams each.
  static Limits TwoSources() { return {/*batch=*/6, 4, 1, 1, /*beams=*/3, /*max_source=*/12}; }

  Session* Create(const Limits& limits) {
    Result<Session*> session = Session::Create(model_, limits, {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return session.ok() ? session.value() : nullptr;
  }

  static void ExpectSays(const Status& status, tarn_status code, const char* words) {
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message() << ", expected: " << words;
  }

  std::vector<float> Step(Session* session, const std::vector<int32_t>& tokens) {
    const Result<const float*> logits = session->Prefill(tokens.data(), 1);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return logits.ok() ? std::vector<float>(logits.value(), logits.value() + 256 * tokens.size()) : std::vector<float>();
  }

  std::vector<uint8_t> file_;
  LoadedModel model_;
  const std::vector<int32_t> sources_ = std::vector<int32_t>(24, 'a');
  const size_t lengths_[2] = {12, 5};
};

TEST_F(Encoding, ExactlyTheReportedBytesRun) {
  for (const std::string& config : {Seq2Seq(kSoftmaxCross), Seq2Seq(kAbcCross), Encoder("masked_lm")}) {
    Load(config);
    Limits limits = TwoSources();
    if (model_.model().program(Stage::kDecode) == nullptr) limits.batch = limits.beams = 1;
    const Result<ProgramBytes> bytes = Session::Measure(model_, limits);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const size_t total = static_cast<size_t>(bytes.value().total);
    std::vector<uint8_t> memory(total + 64);
    uint8_t* block = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    for (const size_t less : {size_t{1}, size_t{64}, total / 2, total - 8}) {
      const Result<Session*> short_of = Session::Create(model_, limits, {block, total - less});
      ExpectSays(short_of.status(), TARN_BUFFER_TOO_SMALL, (std::to_string(total) + " are needed").c_str());
    }
    const Result<Session*> session = Session::Create(model_, limits, {block, total});
    ASSERT_TRUE(session.ok()) << session.status().message();
    Session::Destroy(session.value());
  }
}

TEST_F(Encoding, ALongerSourceIsAnErrorThatChangesNothing) {
  Load(Seq2Seq(kAbcCross));
  Session* session = Create(TwoSources());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Encode(sources_.data(), 12, lengths_).ok());
  const std::vector<float> first = Step(session, std::vector<int32_t>(6, 'x'));

  const std::vector<int32_t> wide(26, 'b');
  const size_t too_long[] = {5, 13}, empty[] = {5, 0}, longer_than_row[] = {5, 14};
  ExpectSays(session->Encode(wide.data(), 13, too_long), TARN_INVALID_ARGUMENT, "source 1 has 13 tokens, 1 to 12 expected");
  ExpectSays(session->Encode(wide.data(), 13, empty), TARN_INVALID_ARGUMENT, "source 1 has 0 tokens");
  ExpectSays(session->Encode(wide.data(), 13, longer_than_row), TARN_INVALID_ARGUMENT, "in rows of 13");
  std::vector<int32_t> bad = sources_;
  bad[13] = 256;
  ExpectSays(session->Encode(bad.data(), 12, lengths_), TARN_INVALID_ARGUMENT, "source 1: token 1 is 256");
  // The sequences go on where they were, and start anew with the next source.
  EXPECT_EQ(session->instance().tokens_seen(), 1u);
  const std::vector<float> second = Step(session, std::vector<int32_t>(6, 'x'));
  EXPECT_NE(first, second);
  ASSERT_TRUE(session->Encode(sources_.data(), 12, lengths_).ok());
  EXPECT_EQ(Step(session, std::vector<int32_t>(6, 'x')), first);
  EXPECT_EQ(Step(session, std::vector<int32_t>(6, 'x')), second);
  Session::Destroy(session);
}

TEST_F(Encoding, LimitsAreHeldAgainstTheModel) {
  Load(Seq2Seq(kSoftmaxCross));
  Limits limits = TwoSources();
  limits.max_source = 41;
  ExpectSays(Session::Create(model_, limits, {}).status(), TARN_INVALID_ARGUMENT, "max_source is 41");
  limits.max_source = 0;
  ExpectSays(Session::Create(model_, limits, {}).status(), TARN_INVALID_ARGUMENT, "max_source is 0");
  Load(Encoder("masked_lm"));
  ExpectSays(Session::Create(model_, TwoSources(), {}).status(), TARN_INVALID_ARGUMENT, "beams is 3, 1 to 1 expected");
}

TEST_F(Encoding, CallsFitTheTask) {
  Load(Seq2Seq(kAbcCross));
  Session* session = Create(TwoSources());
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> step(6, 'x');
  ExpectSays(session->Prefill(step.data(), 1).status(), TARN_INVALID_ARGUMENT, "encode the sources first");
  ExpectSays(session->Classify(sources_.data(), 12, lengths_).status(), TARN_UNSUPPORTED, "the model's task is seq2seq");
  ASSERT_TRUE(session->Encode(sources_.data(), 12, lengths_).ok());
  const uint32_t across[] = {0, 1, 3, 3, 4, 5};
  ExpectSays(session->Reorder(across), TARN_INVALID_ARGUMENT, "parent of sequence 2 is 3, 0 to 2 expected");
  session->Reset();
  ExpectSays(session->Prefill(step.data(), 1).status(), TARN_INVALID_ARGUMENT, "encode the sources first");
  Session::Destroy(session);
}

// Sequences that change places go on as those that they became, also from other sources' beams.
TEST_F(Encoding, AReorderedSequenceGoesOnAsItsParent) {
  for (const std::string& cross : {kSoftmaxCross, kAbcCross}) {
    Load(Seq2Seq(cross));
    Session* session = Create(TwoSources());
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->Encode(sources_.data(), 12, lengths_).ok());
    Step(session, {'a', 'b', 'c', 'd', 'e', 'f'});
    const uint32_t parents[] = {2, 0, 0, 5, 4, 3};
    ASSERT_TRUE(session->Reorder(parents).ok());
    const std::vector<float> moved = Step(session, std::vector<int32_t>(6, 'x'));
    ASSERT_TRUE(session->Encode(sources_.data(), 12, lengths_).ok());
    Step(session, {'a', 'b', 'c', 'd', 'e', 'f'});
    const std::vector<float> unmoved = Step(session, std::vector<int32_t>(6, 'x'));
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(std::memcmp(&moved[i * 256], &unmoved[parents[i] * 256], 256 * sizeof(float)), 0) << "sequence " << i;
    }
    Session::Destroy(session);
  }
}

}  // namespace
}  // namespace tarn
