// The rows of a source become one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/interpreter/instance.h"
#include "runtime/interpreter/packed_weights.h"
#include "tests/support/models.h"
#include "tools/convert/build/graph_builder.h"

namespace tarn {
namespace {

using flatbuffers::FlatBufferBuilder;

constexpr uint32_t kTokens = 3, kWidth = 2;

// A model whose only op is this one, in "encode".
std::vector<uint8_t> PoolModel(format::PoolKind kind) {
  convert::GraphBuilder builder(convert::Precision::kF32);
  builder.BeginProgram("encode");
  const format::Slice x = builder.AddValue("x", kWidth),
                      pooled = builder.AddValue("pooled", kWidth, format::Time::Fixed, format::DType::F32, 1);
  builder.program().num_inputs = 1;
  const auto attributes = [kind](FlatBufferBuilder& fbb) { return format::CreatePool(fbb, kind).Union(); };
  builder.AddOp({"pool", format::OpAttributes::Pool, attributes, {x}, {pooled.value()}, {}, {}});
  builder.program().outputs = {pooled.value()};
  builder.graph().name = "test";
  builder.graph().vocab_size = 1;
  builder.graph().task = format::Task::Classification;
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), convert::RandomWeights(/*seed=*/1), &sink);
  return sink.bytes();
}

std::vector<float> Pooled(format::PoolKind kind, const float (&rows)[kTokens * kWidth]) {
  const std::vector<uint8_t> file = PoolModel(kind);
  const Allocator allocator = DefaultAllocator();
  Result<Model> opened = Model::Open(FileMap(), {file.data(), file.size()}, allocator);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  const Model model = std::move(opened.value());
  Environment environment{&model, SelectKernels(nullptr), &PortableDense(), nullptr, allocator};
  const PackedWeights packed = std::move(PackedWeights::Create(environment).value());
  environment.packed = &packed;
  Limits limits{/*batch=*/1, /*max_chunk=*/1, /*max_output_rows=*/1, /*threads=*/1};
  limits.max_source = kTokens;
  const Block block = std::move(Block::Allocate(allocator, Instance::Measure(environment, limits).value().total, "test").value());
  Instance* const instance = Instance::Create(environment, limits, block.bytes()).value();
  std::memcpy(instance->input(Stage::kEncode, 0), rows, sizeof(rows));
  EXPECT_TRUE(instance->Encode(0, kTokens, {}, ThreadPool()).ok());
  std::vector<float> pooled(kWidth);
  std::memcpy(pooled.data(), instance->output(Stage::kEncode, 0), kWidth * sizeof(float));
  instance->Destroy();
  return pooled;
}

TEST(Pool, OfEachKind) {
  const float rows[] = {1, -5, 4, -7, 1, -6};
  EXPECT_EQ(Pooled(format::PoolKind::First, rows), (std::vector<float>{1, -5}));
  EXPECT_EQ(Pooled(format::PoolKind::Mean, rows), (std::vector<float>{2, -6}));
  EXPECT_EQ(Pooled(format::PoolKind::Max, rows), (std::vector<float>{4, -5}));
}

TEST(Pool, ANanStaysOne) {
  for (uint32_t poisoned = 0; poisoned < kTokens; ++poisoned) {
    float rows[] = {1, -5, 4, -7, 1, -6};
    rows[poisoned * kWidth] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> most = Pooled(format::PoolKind::Max, rows);
    EXPECT_TRUE(std::isnan(most[0])) << "token " << poisoned;
    EXPECT_EQ(most[1], -5);
  }
}

}  // namespace
}  // namespace tarn
