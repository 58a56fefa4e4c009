// Shortlists: which tokens can follow a source, and that these have the logits which they have without a list. What a file may say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/session/snapshot_testing.h"
#include "tests/support/changed_model.h"
#include "tests/support/loaded.h"

namespace tarn {
namespace {

using convert::Graph;
using convert::Precision;

constexpr uint32_t kVocab = 256, kBeams = 3;
const std::vector<std::vector<int32_t>> kSources = {{5, 9, 250, 9, 0}, {77}};

std::string Config(bool tied, const std::string& more = "") {
  const std::string flag = tied ? "true" : "false";
  return R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 256, "hidden_size": 32, "num_heads": 4,
    "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
    "position_embedding": "sinusoidal", "share_embeddings": )" +
         flag + R"(, "tie_word_embeddings": )" + flag + R"(, "lm_head_bias": )" + flag + more +
         R"(, "encoder_attention": {"system": "softmax", "max_context": 40}, "cross_attention": {"system": "abc_mlp", "num_slots": 4},
    "decoder_attention": {"system": "diagonal_recurrence"}})";
}

// Token i is followed by 3 i, 3 i + 1 and so on, i mod 5 of them, modulo the vocabulary.
convert::ShortlistFile Lists(uint32_t first) {
  convert::ShortlistFile lists;
  lists.path = "test";
  lists.first = first;
  lists.offsets = {0};
  for (uint32_t token = 0; token < kVocab; ++token) {
    for (uint32_t i = 0; i < token % 5; ++i) lists.targets.push_back(static_cast<int32_t>((3 * token + i) % kVocab));
    lists.offsets.push_back(static_cast<int32_t>(lists.targets.size()));
  }
  return lists;
}

std::set<int32_t> Allowed(const std::vector<int32_t>& source, uint32_t first, bool with_source) {
  std::set<int32_t> tokens;
  for (int32_t token = 0; token < static_cast<int32_t>(first); ++token) tokens.insert(token);
  for (const int32_t token : source) {
    for (int32_t i = 0; i < token % 5; ++i) tokens.insert((3 * token + i) % static_cast<int32_t>(kVocab));
    if (with_source) tokens.insert(token);
  }
  for (int32_t token = static_cast<int32_t>(first); token < static_cast<int32_t>(kVocab); ++token) {
    if (tokens.size() % 8 == 0) break;
    tokens.insert(token);
  }
  return tokens;
}

std::vector<uint8_t> File(const std::string& text, Precision precision, const convert::ShortlistFile* lists,
                          const std::function<void(Graph*)>& change = nullptr) {
  convert::ModelConfig config = convert::ParseConfig(text, "test");
  if (lists != nullptr) convert::SetShortlist(*lists, &config);
  convert::GraphBuilder builder(precision);
  convert::BuildModel(config, &builder);
  builder.graph().name = "test";
  if (change) change(&builder.graph());
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), convert::RandomWeights(/*seed=*/1), &sink);
  return sink.bytes();
}

class Opened {
 public:
  Opened(std::vector<uint8_t> file, const char* isa) : file_(std::move(file)) {
    Result<LoadedModel> model =
        LoadedModel::Open(FileMap(), {file_.data(), file_.size()}, {Verify::kOnce, isa, /*portable=*/true, DefaultAllocator()});
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model.value());
    EXPECT_TRUE(model_.Pack().ok());
  }

  // Sources are encoded.
  test::SessionPointer New(uint32_t beams, uint32_t threads = 1, uint32_t rows = 1) const {
    const uint32_t sources = static_cast<uint32_t>(kSources.size());
    Result<Session*> session = Session::Create(model_, {sources * beams, rows, rows, threads, beams, /*max_source=*/8}, {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    std::vector<int32_t> tokens(sources * 8, -1);
    size_t lengths[2];
    for (size_t i = 0; i < sources; ++i) {
      std::copy(kSources[i].begin(), kSources[i].end(), tokens.begin() + static_cast<ptrdiff_t>(8 * i));
      lengths[i] = kSources[i].size();
    }
    const Status status = session.value()->Encode(tokens.data(), 8, lengths);
    EXPECT_TRUE(status.ok()) << status.message();
    return test::SessionPointer(session.value(), Session::Destroy);
  }

 private:
  const std::vector<uint8_t> file_;
  LoadedModel model_;
};

// Logits of `count` tokens of every sequence, [sequence][token][vocabulary].
std::vector<float> Scores(Session* session, size_t count) {
  const size_t batch = session->instance().limits().batch;
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < batch * count; ++i) tokens.push_back(snapshot_test::Token(i));
  const Result<const float*> logits = session->Score(tokens.data(), count);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  return {logits.value(), logits.value() + batch * count * kVocab};
}

void ExpectListed(const std::vector<float>& found, const std::vector<float>& whole, size_t of_sequence,
                  const std::function<std::set<int32_t>(size_t source)>& allowed) {
  ASSERT_EQ(found.size(), whole.size());
  size_t different = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t sequence = i / of_sequence;
    const bool listed = allowed(sequence / kBeams).count(static_cast<int32_t>(i % kVocab)) > 0;
    different += found[i] != (listed ? whole[i] : -HUGE_VALF);
  }
  EXPECT_EQ(different, 0u);
}

TEST(Shortlist, ListedTokensHaveTheLogitsOfAWholeLayer) {
  const convert::ShortlistFile lists = Lists(7);
  for (const char* isa : {static_cast<const char*>(nullptr), "reference"}) {
    for (const bool tied : {true, false}) {
      for (const Precision precision :
           {Precision::kF32, Precision::kF16, Precision::kInt8, Precision::kInt4, Precision::kInt3, Precision::kInt2}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(precision)) + (tied ? " tied " : " ") + (isa == nullptr ? "" : isa));
        const Opened whole(File(Config(tied), precision, nullptr), isa), listed(File(Config(tied), precision, &lists), isa);
        const std::vector<float> expected = Scores(whole.New(kBeams, 1, 4).get(), 4);
        const auto allowed = [&](size_t source) { return Allowed(kSources[source], 7, tied); };
        for (const uint32_t threads : {1u, 3u}) {
          ExpectListed(Scores(listed.New(kBeams, threads, 4).get(), 4), expected, 4 * kVocab, allowed);
        }
      }
    }
  }
}

TEST(Shortlist, TokensThatCanFollow) {
  const std::vector<float> whole = Scores(Opened(File(Config(true), Precision::kInt8, nullptr), nullptr).New(kBeams).get(), 1);
  for (const uint32_t first : {1u, 2u, 8u, 31u, 255u, 256u, 1000u}) {
    SCOPED_TRACE(first);
    const convert::ShortlistFile lists = Lists(first);
    const Opened model(File(Config(true), Precision::kInt8, &lists), nullptr);
    ExpectListed(Scores(model.New(kBeams).get(), 1), whole, kVocab,
                 [&](size_t source) { return Allowed(kSources[source], std::min(first, kVocab), true); });
  }
}

TEST(Shortlist, EverySequenceHasTheListOfItsSource) {
  const convert::ShortlistFile lists = Lists(7);
  const Opened model(File(Config(true), Precision::kInt8, &lists), nullptr);
  const std::vector<float> together = Scores(model.New(1).get(), 1);
  for (const uint32_t number : {0u, 1u}) {
    const auto session = model.New(1);
    const int32_t token = snapshot_test::Token(number);
    const SequenceTokens part{number, &token, 1};
    const Result<const float*> logits = session->PrefillSequences({&part, 1}, true);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    EXPECT_EQ(std::memcmp(logits.value(), together.data() + number * kVocab, kVocab * sizeof(float)), 0);
  }
}

TEST(Shortlist, IsPartOfASnapshot) {
  const convert::ShortlistFile lists = Lists(7);
  const Opened model(File(Config(true), Precision::kInt8, &lists), nullptr);
  const auto session = model.New(kBeams);
  const snapshot_test::Bytes snapshot = snapshot_test::Save(*session);
  const std::vector<float> expected = Scores(session.get(), 1);
  const auto other = model.New(kBeams);
  snapshot_test::Restore(other.get(), snapshot);
  EXPECT_EQ(Scores(other.get(), 1), expected);
}

// In a vocabulary that fills no whole byte, a snapshot may say that tokens behind the last one can follow.
TEST(Shortlist, BitsOfNoTokenAreLeftOut) {
  std::string text = Config(true);
  const auto replace = [&](const std::string& from, const std::string& to) { text.replace(text.find(from), from.size(), to); };
  replace("\"vocab_size\": 256", "\"vocab_size\": 251");
  replace("\"bytes\"", "\"none\"");
  convert::ShortlistFile lists;
  lists.first = 1;
  lists.targets = {1};
  lists.offsets = std::vector<int32_t>(252, 1);
  lists.offsets[0] = 0;
  const Opened model(File(text, Precision::kInt8, &lists), nullptr);
  const auto session = model.New(1);
  const Instance& instance = session->instance();
  for (uint32_t i = 0; i < instance.state_count(); ++i) {
    if (instance.state(i).bytes_per_sequence == 32) std::memset(instance.state(i).data, 0xFF, 64);
  }
  const int32_t tokens[2] = {1, 2};
  const Result<const float*> logits = session->Prefill(tokens, 1);
  ASSERT_TRUE(logits.ok());
  for (size_t i = 0; i < 2 * 251; ++i) EXPECT_TRUE(std::isfinite(logits.value()[i])) << i;
}

void ExpectRefused(const std::string& words, const std::function<void(Graph*)>& change) {
  const convert::ShortlistFile lists = Lists(7);
  const std::vector<uint8_t> file = File(Config(true), Precision::kF32, &lists, change);
  const Status status =
      LoadedModel::Open(FileMap(), {file.data(), file.size()}, {Verify::kOnce, nullptr, true, DefaultAllocator()}).status();
  EXPECT_EQ(status.code(), TARN_BAD_FORMAT) << words;
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
}

std::function<void(Graph*)> WithInteger(size_t tensor, size_t index, int32_t value) {
  return [=](Graph* graph) {
    convert::GraphTensor& changed = graph->tensors[test::FindOp(graph, "shortlist").tensors[tensor]];
    std::vector<int32_t> values = *changed.integers;
    values[index] = value;
    changed.integers = std::make_shared<const std::vector<int32_t>>(values);
  };
}

TEST(Shortlist, ListsAreChecked) {
  const convert::ShortlistFile lists = Lists(7);
  const int32_t any = static_cast<int32_t>(lists.targets.size() + kVocab), count = any + 7;  // every token follows itself
  const auto text = [](int32_t number) { return std::to_string(number); };
  ExpectRefused("offsets: element 0 is 1, 0 to 0 expected", WithInteger(0, 0, 1));
  ExpectRefused("offsets: element 0 is -1, 0 to 0 expected", WithInteger(0, 0, -1));
  ExpectRefused("offsets: element 9 is 5, 21 to " + text(count - 1) + " expected", WithInteger(0, 9, 5));
  ExpectRefused("offsets: element 9 is -2147483648, 21 to", WithInteger(0, 9, INT32_MIN));
  ExpectRefused("offsets: element 9 is " + text(count) + ", 21 to", WithInteger(0, 9, count));
  ExpectRefused("offsets: element 256 is " + text(count), WithInteger(0, 256, count));
  ExpectRefused("offsets: element 257 is " + text(any) + ", " + text(count) + " to " + text(count), WithInteger(0, 257, any));
  ExpectRefused("offsets: element 257 is " + text(count + 1), WithInteger(0, 257, count + 1));
  ExpectRefused("targets: element 3 is 256, 0 to 255 expected", WithInteger(1, 3, 256));
  ExpectRefused("targets: element 3 is -1, 0 to 255 expected", WithInteger(1, 3, -1));
}

TEST(Shortlist, OtherShapesAreRefused) {
  ExpectRefused("set", [](Graph* graph) { graph->states[test::FindOp(graph, "shortlist").states[0]].shape = {33}; });
  ExpectRefused("set is f32, i8 expected",
                [](Graph* graph) { graph->states[test::FindOp(graph, "shortlist").states[0]].dtype = format::DType::F32; });
  ExpectRefused("tensors", [](Graph* graph) { test::FindOp(graph, "shortlist").tensors.pop_back(); });
  ExpectRefused("offsets", [](Graph* graph) {
    std::swap(test::FindOp(graph, "shortlist").tensors[0], test::FindOp(graph, "shortlist").tensors[1]);
  });
  ExpectRefused("inputs", [](Graph* graph) { test::FindOp(graph, "shortlist").inputs.clear(); });
  const auto head = [](Graph* graph) -> convert::GraphOp& { return graph->programs[1].ops.back(); };
  ExpectRefused("states", [&](Graph* graph) { head(graph).states.clear(); });
  ExpectRefused("weight", [&](Graph* graph) { std::swap(head(graph).tensors[0], head(graph).tensors[1]); });
}

// A dense layer packs its weight although a shortlist reads the same one in place, whichever comes first.
TEST(Shortlist, ADenseLayerMayShareItsWeight) {
  const convert::ShortlistFile lists = Lists(7);
  for (const bool portable : {true, false}) {
    for (const Precision precision : {Precision::kF32, Precision::kInt8, Precision::kInt4, Precision::kInt3, Precision::kInt2}) {
      for (const bool dense_first : {false, true}) {
        const std::vector<uint8_t> file = File(Config(false), precision, &lists, [&](Graph* graph) {
          convert::GraphProgram& program = graph->programs[1];
          convert::GraphOp op = program.ops.back();
          op.name = "extra";
          op.type = format::OpAttributes::FullyConnected;
          op.attributes = [](flatbuffers::FlatBufferBuilder& b) { return format::CreateFullyConnected(b).Union(); };
          op.states.clear();
          convert::GraphValue value = program.values[op.outputs[0]];
          value.name = "extra";
          const auto last = static_cast<uint32_t>(program.values.size());  // values stand in the order in which they are written
          program.values.push_back(value);
          if (dense_first) {
            program.ops.back().outputs[0] = program.outputs[0] = last;
            program.ops.insert(program.ops.end() - 1, op);
          } else {
            op.outputs[0] = last;
            program.ops.push_back(op);
          }
        });
        Result<LoadedModel> model =
            LoadedModel::Open(FileMap(), {file.data(), file.size()}, {Verify::kOnce, nullptr, portable, DefaultAllocator()});
        ASSERT_TRUE(model.ok()) << model.status().message();
        ASSERT_TRUE(model.value().Pack().ok());
        EXPECT_GT(model.value().packed_bytes().in_place, 0u);
        Result<Session*> created = Session::Create(model.value(), {1, 1, 1, 1, 1, /*max_source=*/8}, {});
        ASSERT_TRUE(created.ok()) << created.status().message();
        const test::SessionPointer session(created.value(), Session::Destroy);
        const int32_t tokens[] = {5, 9};
        const size_t length = std::size(tokens);
        ASSERT_TRUE(session->Encode(tokens, length, &length).ok());
        EXPECT_TRUE(session->Prefill(tokens, 1).ok());
      }
    }
  }
}

TEST(Shortlist, ConfigsThatCannotHaveOneAreNamed) {
  const auto refused = [](const std::string& text, const convert::ShortlistFile& lists) -> std::string {
    convert::ModelConfig config = convert::ParseConfig(text, "test");
    try {
      convert::SetShortlist(lists, &config);
    } catch (const convert::ConvertError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused(test::ConfigText(test::kRfa), Lists(1)), "test: a model of task \"seq2seq\" expected, whose source it reads");
  convert::ShortlistFile lists = Lists(1);
  lists.offsets.pop_back();
  EXPECT_EQ(refused(Config(true), lists), "test: has lists for 255 tokens of a source, the model has 256");
  EXPECT_EQ(refused(Config(true, R"(, "bos_token_id": 255)"), lists), "");
  lists.targets[4] = 256;
  EXPECT_EQ(refused(Config(true, R"(, "bos_token_id": 255)"), lists), "test: target 4 is 256, the model has 256 tokens");
}

}  // namespace
}  // namespace tarn
