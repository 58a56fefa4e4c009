// Ops over whole sequences that are longer than the blocks they run in: systems that come out the same by definition, threads,
// which do not change a bit, and refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "runtime/interpreter/instance.h"
#include "runtime/interpreter/packed_weights.h"
#include "runtime/ops/attention/cache/top_indices.h"
#include "tests/support/models.h"
#include "tests/support/threads.h"
#include "tools/convert/attention/attention.h"
#include "tools/convert/attention/cache_attention.h"

namespace tarn {
namespace {

using convert::AttentionOp;

constexpr uint32_t kTokens = 300;  // almost five blocks of queries
constexpr uint32_t kDim = 24;
const format::Heads kHeads(4, 2, kDim, kDim);
const convert::AttentionContext kNoncausal{kHeads, 0, 96, false, false, convert::AttentionForm::kNoncausal};

constexpr const char* kSoftmax = R"({"system": "softmax", "max_context": 300})";

AttentionOp Parsed(const char* attention) {
  return convert::ParseAttention(convert::ParseJson(attention, "test"), "test", kNoncausal);
}

AttentionOp Windowed(uint32_t window) {
  convert::CacheAttention cache;
  cache.policy = CachePolicy::kWindow;
  cache.scale = convert::DefaultScale(kHeads);
  cache.window = window;
  return convert::MakeCacheAttention(cache, kNoncausal, "test");
}

AttentionOp Pooled(uint32_t window, uint32_t kernel, uint32_t stride) {
  convert::CacheAttention cache;
  cache.policy = CachePolicy::kPooled;
  cache.scale = convert::DefaultScale(kHeads);
  cache.window = window;
  cache.pool_kernel = kernel;
  cache.pool_stride = stride;
  return convert::MakeCacheAttention(cache, kNoncausal, "test");
}

AttentionOp WithGlobals(uint32_t window, const std::vector<uint32_t>& positions, bool own_projections = false) {
  const convert::Json object = {
      {"system", "l2g_window"}, {"window", window}, {"global_positions", positions}, {"global_projections", own_projections}};
  return Parsed(object.dump().c_str());
}

// A model whose only op is this one. `queries`: how many there are always; 0: one per token. `more`: inputs behind q, k and v, of
// the values that they have columns of.
std::vector<uint8_t> ModelOf(const AttentionOp& op, Stage stage = Stage::kEncode, uint32_t queries = 0,
                             const std::vector<format::Slice>& more = {}) {
  convert::GraphBuilder builder(convert::Precision::kF32);
  builder.BeginProgram(StageName(stage));
  const format::Slice q = builder.AddValue("q", kHeads.heads() * kHeads.head_dim(),
                                           queries == 0 ? format::Time::Tokens : format::Time::Fixed, format::DType::F32, queries);
  const format::Slice k = builder.AddValue("k", kHeads.kv_heads() * kHeads.head_dim());
  const format::Slice v = builder.AddValue("v", kHeads.kv_heads() * kHeads.value_dim());
  builder.program().num_inputs = 3;
  std::vector<format::Slice> inputs = {q, k, v};
  inputs.insert(inputs.end(), more.begin(), more.end());
  builder.program().outputs = {builder.AddAttention("attn", "", op, kHeads, inputs).value()};
  builder.graph().name = "test";
  builder.graph().vocab_size = 1;
  if (stage == Stage::kEncode) builder.graph().task = format::Task::Classification;
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), convert::RandomWeights(/*seed=*/1), &sink);
  return sink.bytes();
}

// What the op makes of kTokens rows of random q, k and v.
std::vector<float> OutputOf(const AttentionOp& op, uint32_t threads = 1) {
  const std::vector<uint8_t> file = ModelOf(op);
  const Allocator allocator = DefaultAllocator();
  const Result<Model> model = Model::Open(FileMap(), {file.data(), file.size()}, allocator);
  EXPECT_TRUE(model.ok()) << model.status().message();
  Environment environment{&model.value(), SelectKernels(nullptr), &PortableDense(), nullptr, allocator};
  const Result<PackedWeights> packed = PackedWeights::Create(environment);
  environment.packed = &packed.value();
  Limits limits{/*batch=*/1, /*max_chunk=*/1, /*max_output_rows=*/1, threads};
  limits.max_source = kTokens;
  const Result<ProgramBytes> bytes = Instance::Measure(environment, limits);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  const Result<Block> block = Block::Allocate(allocator, bytes.value().total, "test");
  const Result<Instance*> created = Instance::Create(environment, limits, block.value().bytes());
  EXPECT_TRUE(created.ok()) << created.status().message();
  Instance& instance = *created.value();
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t heads = i == 0 ? kHeads.heads() : kHeads.kv_heads();
    float* rows = reinterpret_cast<float*>(instance.input(Stage::kEncode, i));
    for (size_t j = 0; j < size_t{kTokens} * heads * kDim; ++j) rows[j] = static_cast<float>(random()) * 0x1p-30f - 2.0f;
  }
  const test::Threads pool(threads);
  EXPECT_TRUE(instance.Encode(0, kTokens, {}, pool.pool).ok());
  const float* o = reinterpret_cast<const float*>(instance.output(Stage::kEncode, 0));
  const std::vector<float> out(o, o + size_t{kTokens} * kHeads.heads() * kDim);
  instance.Destroy();
  return out;
}

// Why a session cannot be made of the model.
std::string Refusal(const std::vector<uint8_t>& file) {
  const Result<Model> model = Model::Open(FileMap(), {file.data(), file.size()}, DefaultAllocator());
  if (!model.ok()) return model.status().message();
  const Environment environment{&model.value(), SelectKernels(nullptr), &PortableDense(), nullptr, DefaultAllocator()};
  Limits limits{/*batch=*/1, /*max_chunk=*/1, /*max_output_rows=*/1, /*threads=*/1};
  limits.max_source = kTokens;
  return Instance::Measure(environment, limits).status().message();
}

void ExpectClose(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  EXPECT_LT(worst, 1e-5f);  // of means of values within 2
}

TEST(Noncausal, AWindowOverEverythingIsSoftmax) { ExpectClose(OutputOf(Windowed(2 * kTokens)), OutputOf(Parsed(kSoftmax))); }

TEST(Noncausal, GlobalTokensSeeAndAreSeen) {
  const size_t row = kHeads.heads() * kHeads.value_dim();
  std::vector<uint32_t> all(kTokens);
  for (uint32_t i = 0; i < kTokens; ++i) all[i] = i;
  ExpectClose(OutputOf(WithGlobals(1, all)), OutputOf(Parsed(kSoftmax)));
  ExpectClose(OutputOf(WithGlobals(40, {kTokens, kTokens + 7})), OutputOf(Windowed(40)));  // there are no such tokens
  // Of one in the middle, its own row alone is that of softmax.
  const std::vector<float> softmax = OutputOf(Parsed(kSoftmax)), one = OutputOf(WithGlobals(40, {150}));
  ExpectClose({&one[150 * row], &one[151 * row]}, {&softmax[150 * row], &softmax[151 * row]});
  // Where it stands within the window, nothing else changes.
  const std::vector<float> window = OutputOf(Windowed(40));
  for (const uint32_t t : {130u, 149u, 151u, 170u}) {
    ExpectClose({&one[t * row], &one[(t + 1) * row]}, {&window[t * row], &window[(t + 1) * row]});
  }
  EXPECT_NE(one[129 * row], window[129 * row]);
  EXPECT_NE(one[171 * row], window[171 * row]);
}

TEST(Noncausal, GlobalTokensMayHaveInputsOfTheirOwn) {
  const AttentionOp own = WithGlobals(40, {3}, /*own_projections=*/true);
  const uint32_t q = kHeads.heads() * kDim, k = kHeads.kv_heads() * kDim;
  const auto refusal = [&](const std::vector<format::Slice>& more) { return Refusal(ModelOf(own, Stage::kEncode, 0, more)); };
  EXPECT_EQ(refusal({{0, 0, q}, {1, 0, k}, {2, 0, k}}), "");
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({{0, 0, q}, {1, 0, k}}).find("5 found, 3 expected"), std::string::npos) << refusal({{0, 0, q}, {1, 0, k}});
  EXPECT_NE(refusal({{1, 0, k}, {1, 0, k}, {2, 0, k}}), "");
  EXPECT_NE(refusal({{0, 0, q}, {1, 0, k}, {0, 0, q}}), "");
  const AttentionOp window = Windowed(40);
  EXPECT_NE(Refusal(ModelOf(window, Stage::kEncode, 0, {{0, 0, q}, {1, 0, k}, {2, 0, k}})), "");
}

TEST(Noncausal, PoolsOfOneTokenAreAWindow) {
  for (const uint32_t window : {1, 40, 101}) ExpectClose(OutputOf(Pooled(window, 1, 1)), OutputOf(Windowed(window)));
}

TEST(Noncausal, ClustersWhoseTopIsEveryKeyAreSoftmax) {
  ExpectClose(
      OutputOf(Parsed(R"({"system": "improved_clustered", "num_clusters": 20, "bits": 9, "topk": 300, "max_context": 300})")),
      OutputOf(Parsed(kSoftmax)));
}

TEST(Noncausal, OneClusterHasOneOutput) {
  const std::vector<float> o = OutputOf(Parsed(R"({"system": "clustered", "num_clusters": 1, "bits": 64, "max_context": 300})"));
  const size_t row = kHeads.heads() * kHeads.value_dim();
  for (size_t i = row; i < o.size(); ++i) ASSERT_EQ(o[i], o[i % row]);
}

TEST(Noncausal, WhereAllQueriesAreChosenProbSparseIsSoftmax) {
  ExpectClose(OutputOf(Parsed(R"({"system": "probsparse", "factor": 1000, "max_context": 300})")), OutputOf(Parsed(kSoftmax)));
}

TEST(Noncausal, OpsStandInEncode) {
  for (const char* attention : {kSoftmax, R"({"system": "clustered", "num_clusters": 3, "max_context": 9})",
                                R"({"system": "probsparse", "max_context": 9})"}) {
    EXPECT_EQ(Refusal(ModelOf(Parsed(attention))), "");
    EXPECT_NE(Refusal(ModelOf(Parsed(attention), Stage::kDecode)).find("'encode' expected"), std::string::npos) << attention;
  }
}

TEST(Noncausal, DistancesAndMasksNeedARowPerToken) {
  const AttentionOp ops[] = {Windowed(5), Pooled(5, 2, 2), WithGlobals(5, {0}),
                             Parsed(R"({"system": "probsparse", "masked": true, "max_context": 9})")};
  for (const AttentionOp& op : ops) {
    EXPECT_EQ(Refusal(ModelOf(op)), "");
    EXPECT_NE(Refusal(ModelOf(op, Stage::kEncode, 7)).find("different numbers of rows"), std::string::npos) << op.system;
  }
  EXPECT_EQ(Refusal(ModelOf(Parsed(kSoftmax), Stage::kEncode, 7)), "");
}

TEST(Noncausal, TopIndicesAreTheFirstOfTheLargest) {
  const float scores[] = {1, 3, NAN, 2, 3, -HUGE_VALF, 3, 0};
  const std::vector<std::vector<uint32_t>> expected = {
      {}, {1}, {1, 4}, {1, 4, 6}, {1, 3, 4, 6}, {0, 1, 3, 4, 6}, {0, 1, 3, 4, 6, 7}, {0, 1, 2, 3, 4, 6, 7}};
  for (size_t count = 0; count < expected.size(); ++count) {
    std::vector<uint32_t> indices(count);
    TopIndices(scores, std::size(scores), count, indices.data());
    EXPECT_EQ(expected[count], indices);
  }
}

TEST(Noncausal, ThreadsDoNotChangeABit) {
  const AttentionOp ops[] = {
      Parsed(kSoftmax),
      Windowed(50),
      WithGlobals(50, {0, 64, 65, 299}),
      Pooled(90, 7, 3),
      Parsed(R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 300})"),
      Parsed(R"({"system": "clustered", "num_clusters": 40, "bits": 20, "max_context": 300})"),
      Parsed(R"({"system": "improved_clustered", "num_clusters": 40, "bits": 20, "topk": 30, "max_context": 300})"),
      Parsed(R"({"system": "probsparse", "max_context": 300})"),
      Parsed(R"({"system": "probsparse", "masked": true, "max_context": 300})"),
  };
  for (const AttentionOp& op : ops) {
    const std::vector<float> one = OutputOf(op);
    for (const uint32_t threads : {2, 4}) EXPECT_TRUE(OutputOf(op, threads) == one) << op.system << ", " << threads << " threads";
  }
}

}  // namespace
}  // namespace tarn
