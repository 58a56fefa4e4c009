// Memories of constant size over whole sequences: what a source keeps reads as what an op that keeps nothing, for every beam, in
// every chunk, on any number of threads, and nearly so in f16 and int8.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/interpreter/instance.h"
#include "runtime/interpreter/packed_weights.h"
#include "tests/support/models.h"
#include "tests/support/threads.h"
#include "tools/convert/attention/attention.h"
#include "variants/linear.h"

namespace tarn {
namespace {

using convert::AttentionForm;
using convert::AttentionOp;

constexpr uint32_t kTokens = 300;  // almost five blocks of keys, more than a task of queries
constexpr uint32_t kSources = 2, kBeams = 3;
const format::Heads kHeads(4, 2, 20, 12);

constexpr const char* kSystems[] = {
    R"({"system": "rfa", "feature_map": "arccos", "num_features": 24})",
    R"({"system": "linear_transformer"})",
    R"({"system": "rfa_normfree", "num_features": 24})",
    R"({"system": "performer_positive", "num_features": 24})",
    R"({"system": "abc_mlp", "num_slots": 10})",
    R"({"system": "linformer", "num_slots": 10, "max_len": 300})",
    R"({"system": "kv_clustering", "num_slots": 10, "iterations": 3, "mass_bias": true})",
};

AttentionOp Parsed(const char* attention, AttentionForm form) {
  const convert::AttentionContext context{kHeads, 0, 80, false, false, form};
  return convert::ParseAttention(convert::ParseJson(attention, "test"), "test", context);
}

std::vector<format::Slice> AddInputs(const AttentionOp& op, bool with_queries, convert::GraphBuilder* builder) {
  std::vector<format::Slice> inputs;
  if (with_queries) inputs.push_back(builder->AddValue("q", kHeads.heads() * kHeads.head_dim()));
  inputs.push_back(builder->AddValue("k", kHeads.kv_heads() * kHeads.head_dim()));
  inputs.push_back(builder->AddValue("v", kHeads.kv_heads() * kHeads.value_dim()));
  for (const convert::LogitInput& logits : op.logits) inputs.push_back(builder->AddValue("logits", logits.width));
  builder->program().num_inputs = static_cast<uint32_t>(inputs.size());
  return inputs;
}

std::vector<uint8_t> Finish(format::Task task, convert::GraphBuilder* builder) {
  builder->graph().name = "test";
  builder->graph().vocab_size = 1;
  builder->graph().task = task;
  convert::MemorySink sink;
  convert::WriteModel(builder->graph(), convert::RandomWeights(/*seed=*/1), &sink);
  return sink.bytes();
}

// A model whose only op is this one, in "encode".
std::vector<uint8_t> WholeModel(const AttentionOp& op) {
  convert::GraphBuilder builder(convert::Precision::kF32);
  builder.BeginProgram("encode");
  const std::vector<format::Slice> inputs = AddInputs(op, /*with_queries=*/true, &builder);
  builder.program().outputs = {builder.AddAttention("attn", "", op, kHeads, inputs).value()};
  return Finish(format::Task::Classification, &builder);
}

// One that writes in "encode" what "decode" reads.
std::vector<uint8_t> CrossModel(const char* attention, format::DType state) {
  convert::ModelConfig config{};
  config.task = format::Task::Seq2Seq;
  config.cross = {Parsed(attention, AttentionForm::kCross)};
  convert::SetStateTypes(state, /*force=*/true, &config);
  const std::vector<AttentionOp>& layers = config.cross;
  convert::GraphBuilder builder(convert::Precision::kF32);
  builder.BeginProgram("encode");
  const std::vector<format::Slice> inputs = AddInputs(layers[0], /*with_queries=*/false, &builder);
  builder.program().outputs = {inputs[0].value()};
  const std::vector<uint32_t> states = builder.AddAttentionWrite("write", "", layers[0], inputs);
  builder.BeginProgram("decode");
  const format::Slice q = builder.AddValue("q", kHeads.heads() * kHeads.head_dim());
  builder.program().num_inputs = 1;
  builder.program().outputs = {builder.AddAttentionRead("read", "", layers[0], kHeads, q, states).value()};
  return Finish(format::Task::Seq2Seq, &builder);
}

// Rows of a value, the same for the same source; q has the same for all sources.
std::vector<float> Rows(uint32_t seed, size_t width) {
  std::mt19937 random(seed);
  std::vector<float> rows(kTokens * width);
  for (float& x : rows) x = static_cast<float>(random() >> 8) * 0x1p-22f - 2.0f;
  return rows;
}

class Runner {
 public:
  Runner(std::vector<uint8_t> file, const Limits& limits) : file_(std::move(file)), limits_(limits) {
    const Allocator allocator = DefaultAllocator();
    Result<Model> model = Model::Open(FileMap(), {file_.data(), file_.size()}, allocator);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model.value());
    Environment environment{&model_, SelectKernels(nullptr), &PortableDense(), nullptr, allocator};
    packed_ = std::move(PackedWeights::Create(environment).value());
    environment.packed = &packed_;
    const Result<ProgramBytes> bytes = Instance::Measure(environment, limits);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    block_ = std::move(Block::Allocate(allocator, bytes.value().total, "test").value());
    std::memset(block_.bytes().data(), 0xFF, block_.bytes().size());  // nothing may depend on what was there
    instance_ = Instance::Create(environment, limits, block_.bytes()).value();
    threads_ = std::make_unique<test::Threads>(limits.threads);
  }
  ~Runner() { instance_->Destroy(); }

  size_t Width(Stage stage, uint32_t value) const { return model_.program(stage)->values()->Get(value)->width(); }

  void Encode(size_t source) {
    for (uint32_t i = 0; i < model_.program(Stage::kEncode)->num_inputs(); ++i) {
      const bool is_q = Width(Stage::kEncode, i) == kHeads.heads() * kHeads.head_dim();
      const std::vector<float> rows =
          Rows(is_q ? 1 : static_cast<uint32_t>(10 + source * 10 + Width(Stage::kEncode, i)), Width(Stage::kEncode, i));
      std::memcpy(instance_->input(Stage::kEncode, i), rows.data(), rows.size() * sizeof(float));
    }
    EXPECT_TRUE(instance_->Encode(source, kTokens, {}, threads_->pool).ok());
  }
  std::vector<float> Output(Stage stage, size_t rows) const {
    const float* o = reinterpret_cast<const float*>(instance_->output(stage, 0));
    return {o, o + rows * kHeads.heads() * kHeads.value_dim()};
  }
  // What sequence `sequence` reads for kTokens queries, in chunks of the limits.
  std::vector<float> Decode(size_t sequence) {
    const size_t width = kHeads.heads() * kHeads.head_dim(), out = kHeads.heads() * kHeads.value_dim();
    const std::vector<float> q = Rows(1, width);
    std::vector<float> o;
    instance_->ResetSequences();
    for (size_t first = 0; first < kTokens; first += limits_.max_chunk) {
      const size_t count = std::min<size_t>(limits_.max_chunk, kTokens - first);
      float* rows = reinterpret_cast<float*>(instance_->input(Stage::kDecode, 0));
      for (size_t s = 0; s < limits_.batch; ++s) {
        std::memcpy(rows + s * count * width, &q[first * width], count * width * sizeof(float));
      }
      EXPECT_TRUE(instance_->Decode(count, 1, threads_->pool).ok());
      const std::vector<float> all = Output(Stage::kDecode, limits_.batch * count);
      o.insert(o.end(), all.begin() + static_cast<ptrdiff_t>(sequence * count * out),
               all.begin() + static_cast<ptrdiff_t>((sequence + 1) * count * out));
    }
    return o;
  }

 private:
  const std::vector<uint8_t> file_;
  const Limits limits_;
  Model model_;
  PackedWeights packed_;
  Block block_;
  std::unique_ptr<test::Threads> threads_;
  Instance* instance_ = nullptr;
};

std::vector<float> Whole(const char* attention, size_t source, uint32_t threads) {
  Limits limits{/*batch=*/1, /*max_chunk=*/1, /*max_output_rows=*/1, threads};
  limits.max_source = kTokens;
  Runner runner(WholeModel(Parsed(attention, AttentionForm::kNoncausal)), limits);
  runner.Encode(source);
  return runner.Output(Stage::kEncode, kTokens);
}

// By every sequence.
std::vector<std::vector<float>> Cross(const char* attention, format::DType state, uint32_t chunk, uint32_t threads) {
  Limits limits{kSources * kBeams, chunk, /*max_output_rows=*/1, threads};
  limits.beams = kBeams;
  limits.max_source = kTokens;
  Runner runner(CrossModel(attention, state), limits);
  for (size_t source = 0; source < kSources; ++source) runner.Encode(kSources - 1);  // is overwritten
  for (size_t source = 0; source < kSources; ++source) runner.Encode(source);
  std::vector<std::vector<float>> o;
  for (size_t s = 0; s < limits.batch; ++s) o.push_back(runner.Decode(s));
  return o;
}

TEST(SourceMemory, BeamsChunksAndThreadsReadTheSameBits) {
  constexpr uint32_t kThreads = 3;
  for (const char* system : kSystems) {
    SCOPED_TRACE(system);
    for (size_t source = 0; source < kSources; ++source) {
      const std::vector<float> whole = Whole(system, source, 1);
      EXPECT_EQ(whole, Whole(system, source, kThreads));
      for (const uint32_t chunk : {37u, kTokens}) {
        const auto cross = Cross(system, format::DType::F32, chunk, chunk == kTokens ? kThreads : 1);
        for (size_t beam = 0; beam < kBeams; ++beam) EXPECT_EQ(whole, cross[source * kBeams + beam]) << chunk;
      }
    }
  }
}

// f16 keeps 11 bits of a number, int8 8 bits of the largest of its row.
TEST(SourceMemory, NarrowStatesAreNear) {
  for (const char* system : kSystems) {
    SCOPED_TRACE(system);
    const std::vector<float> exact = Cross(system, format::DType::F32, kTokens, 1)[0];
    double norm = 0;
    for (const float x : exact) norm += static_cast<double>(x) * x;
    for (const auto& [type, bound] : {std::pair{format::DType::F16, 0x1p-9}, std::pair{format::DType::I8, 0x1p-4}}) {
      const std::vector<float> narrow = Cross(system, type, kTokens, 1)[0];
      double error = 0;
      for (size_t i = 0; i < exact.size(); ++i) error += std::pow(static_cast<double>(exact[i]) - narrow[i], 2);
      EXPECT_LT(std::sqrt(error / norm), bound) << format::EnumNameDType(type);
      EXPECT_GT(error, 0.0) << format::EnumNameDType(type);
    }
  }
}

// The message of a refusal to prepare an op with these attributes, in the part Whole.
std::string Refusal(const char* like, format::OpAttributes type, const convert::AttributeWriter& attributes) {
  AttentionOp op = Parsed(like, AttentionForm::kNoncausal);
  op.type = type;
  op.attributes = attributes;
  op.logits.clear();
  op.tensors.clear();
  const std::vector<uint8_t> file = WholeModel(op);
  const Allocator allocator = DefaultAllocator();
  const Result<Model> model = Model::Open(FileMap(), {file.data(), file.size()}, allocator);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const Environment environment{&model.value(), SelectKernels(nullptr), &PortableDense(), nullptr, allocator};
  const Result<ProgramBytes> bytes = Instance::Measure(environment, Limits{1, 1, 1, 1, 1, kTokens});
  EXPECT_EQ(bytes.status().code(), TARN_BAD_FORMAT);
  return bytes.status().message();
}

TEST(SourceMemory, WhatNeedsAnOrderOfTokensIsRefused) {
  const auto linear = [](Gate gate, WriteRule rule) {
    return Refusal(R"({"system": "linear_transformer"})", format::OpAttributes::NoncausalLinear,
                   [=](flatbuffers::FlatBufferBuilder& b) {
                     format::LinearStateBuilder table(b);
                     table.add_heads(&kHeads);
                     table.add_feature_map(static_cast<uint8_t>(FeatureMap::kEluPlusOne));
                     table.add_gate(static_cast<uint8_t>(gate));
                     table.add_rule(static_cast<uint8_t>(rule));
                     return format::CreateNoncausalLinear(b, format::NoncausalPart::Whole, table.Finish()).Union();
                   });
  };
  EXPECT_NE(linear(Gate::kForget, WriteRule::kSum).find("gate forget"), std::string::npos);
  EXPECT_NE(linear(Gate::kNone, WriteRule::kDelta).find("rule delta"), std::string::npos);

  const auto slots = [](SlotControl control, SlotNormalization normalization) {
    return Refusal(R"({"system": "abc_mlp", "num_slots": 4})", format::OpAttributes::NoncausalSlots,
                   [=](flatbuffers::FlatBufferBuilder& b) {
                     format::SlotMemoryBuilder table(b);
                     table.add_heads(&kHeads);
                     table.add_num_slots(4);
                     table.add_control(static_cast<uint8_t>(control));
                     table.add_normalization(static_cast<uint8_t>(normalization));
                     return format::CreateNoncausalSlots(b, format::NoncausalPart::Whole, table.Finish()).Union();
                   });
  };
  for (size_t i = 0; i < kSlotControlCount; ++i) {
    if (kSlotControls[i].noncausal != NoncausalForm::kNone || (kSlotControls[i].attributes & kReadsPositions) != 0) continue;
    const std::string message = slots(static_cast<SlotControl>(i), SlotNormalization::kRenorm);
    EXPECT_NE(message.find(std::string("control ") + kSlotControls[i].name), std::string::npos) << message;
  }
  EXPECT_NE(slots(SlotControl::kAbcMlp, SlotNormalization::kFrozen).find("frozen"), std::string::npos);
}

}  // namespace
}  // namespace tarn
