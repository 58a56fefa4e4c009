// Models of several programs that are sound FlatBuffers and still wrong.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

constexpr char kSeq2Seq[] = R"({"task": "seq2seq", "vocab_size": 256, "hidden_size": 32, "encoder_layers": 1, "decoder_layers": 1,
    "num_heads": 4, "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
    "encoder_attention": {"system": "softmax", "max_context": 40}, "decoder_attention": {"system": "abc_mlp", "num_slots": 4},
    "cross_attention": {"system": "softmax", "max_context": 40}})";
constexpr char kClassifier[] = R"({"task": "classification", "vocab_size": 256, "hidden_size": 32, "num_layers": 1, "num_heads": 4,
    "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes", "num_labels": 3,
    "pooling": "mean", "tie_word_embeddings": false, "attention": {"system": "softmax", "max_context": 40}})";

using Change = std::function<void(convert::Graph*)>;

Status Opened(const char* config, const Change& change) {
  convert::GraphBuilder builder(convert::Precision::kF32);
  convert::BuildModel(convert::ParseConfig(config, "test"), &builder);
  change(&builder.graph());
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), convert::RandomWeights(1), &sink);
  const std::vector<uint8_t> file = sink.bytes();
  return LoadedModel::Open(FileMap(), {file.data(), file.size()}, {Verify::kEveryTime, nullptr, true, DefaultAllocator()}).status();
}

void ExpectRefused(const char* config, const Change& change, const char* words) {
  const Status status = Opened(config, change);
  EXPECT_FALSE(status.ok()) << words;
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message() << ", expected: " << words;
}

TEST(Programs, TheUnchangedModelsOpen) {
  EXPECT_TRUE(Opened(kSeq2Seq, [](convert::Graph*) {}).ok());
  EXPECT_TRUE(Opened(kClassifier, [](convert::Graph*) {}).ok());
}

TEST(Programs, AreThoseOfTheTask) {
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { std::swap(g->programs[0], g->programs[1]); }, "'encode' expected");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->programs.pop_back(); }, "'decode' expected");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->task = format::Task::CausalLm; }, "'decode' expected");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->task = format::Task::Classification; }, "2 programs found");
  ExpectRefused(
      kClassifier, [](convert::Graph* g) { g->task = format::Task::MaskedLm; }, "output of task masked_lm");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->bos_token = 256; }, "bos_token is 256");
}

// The states of the model, by number: keys and values of the source, then what decoding remembers.
TEST(Programs, StatesHaveOneOwner) {
  constexpr size_t kKeys = 0, kDecoder = 2;
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->states[kKeys].owner = format::Owner::Sequence; }, "source_axis 1");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->states[kDecoder].owner = format::Owner::Source; }, "belongs to a source");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->states[kKeys].source_axis = 0; }, "source_axis 0");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->states[kKeys].source_axis = 3; }, "source_axis 3");
  ExpectRefused(
      kSeq2Seq, [](convert::Graph* g) { g->states[kKeys].source_axis = -1; }, "source axis -1");
  const auto reads = [](convert::Graph* g) -> convert::GraphOp& {
    for (convert::GraphOp& op : g->programs[1].ops) {
      if (op.type == format::OpAttributes::NoncausalCache) return op;
    }
    ADD_FAILURE() << "nothing reads the source";
    return g->programs[1].ops[0];
  };
  ExpectRefused(
      kSeq2Seq, [&](convert::Graph* g) { std::swap(reads(g).states[0], reads(g).states[1]); }, "next in order");
  ExpectRefused(
      kSeq2Seq, [&](convert::Graph* g) { reads(g).states.pop_back(); }, "state 1 is missing");
  ExpectRefused(
      kSeq2Seq,
      [&](convert::Graph* g) {
        reads(g).states = {kDecoder, kDecoder + 1};
      },
      "state");
}

TEST(Programs, RowsThatNobodyAsksForAreRefused) {
  const auto last_of = [](convert::Graph* g, format::Time time) -> convert::GraphValue& {
    for (size_t i = g->programs[0].values.size(); i-- > 0;) {
      if (g->programs[0].values[i].time == time) return g->programs[0].values[i];
    }
    ADD_FAILURE() << "no such value";
    return g->programs[0].values[0];
  };
  ExpectRefused(
      kClassifier, [&](convert::Graph* g) { last_of(g, format::Time::Tokens).time = format::Time::Outputs; },
      "nobody asks for any");
  ExpectRefused(
      kClassifier, [&](convert::Graph* g) { last_of(g, format::Time::Fixed).rows = 0; }, "rows 0");
  ExpectRefused(
      kClassifier, [&](convert::Graph* g) { last_of(g, format::Time::Fixed).rows = 1u << 20; }, "rows 1048576");
  ExpectRefused(
      kClassifier, [&](convert::Graph* g) { last_of(g, format::Time::Tokens).rows = 2; }, "rows 2");
}

}  // namespace
}  // namespace tarn
