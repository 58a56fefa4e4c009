// What a model file may say of a cache: every policy of the list, every number that it reads out of its bounds.
#include "runtime/ops/attention/cache/cache_attributes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace tarn {
namespace {

struct Table : CacheAttributes {
  std::vector<float> bias_slopes;
#define TARN_IGNORE(...)
#define TARN_LIST(name, ...) std::vector<uint32_t> name = {1, 5, 40};
  TARN_CACHE_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_LIST, TARN_IGNORE)
#undef TARN_IGNORE
#undef TARN_LIST
};

using Change = std::function<void(Table*)>;

// Of a table that every policy takes, but for what `change` says.
Result<CacheVariant> Read(size_t policy, uint32_t form, const Change& change) {
  Table table;
#define TARN_SIZE(name, ...) table.name = 6;
#define TARN_IGNORE(...)
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_IGNORE, TARN_IGNORE, TARN_IGNORE)
#undef TARN_SIZE
#undef TARN_IGNORE
  change(&table);
  flatbuffers::FlatBufferBuilder builder;
  const format::Heads heads(2, 1, 4, 4);
#define TARN_IGNORE(...)
#define TARN_LIST(name, ...) const auto name = builder.CreateVector(table.name);
  TARN_CACHE_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_LIST, TARN_IGNORE)
#undef TARN_IGNORE
#undef TARN_LIST
  const auto slopes = table.bias_slopes.empty() ? 0 : builder.CreateVector(table.bias_slopes);
  format::CacheAttentionBuilder out(builder);
  out.add_heads(&heads);
  out.add_policy(static_cast<uint8_t>(policy));
  out.add_scale(table.scale);
  out.add_soft_cap(table.soft_cap);
  out.add_bias_behind(table.bias_behind);
  out.add_bias_ahead(table.bias_ahead);
  if (!table.bias_slopes.empty()) out.add_bias_slopes(slopes);
#define TARN_NUMBER(name, ...) out.add_##name(table.name);
#define TARN_LIST(name, ...) out.add_##name(name);
#define TARN_CHOICE(type, name, ...) out.add_##name(static_cast<uint8_t>(table.name));
  TARN_CACHE_ATTRIBUTES(TARN_NUMBER, TARN_NUMBER, TARN_LIST, TARN_CHOICE)
#undef TARN_NUMBER
#undef TARN_LIST
#undef TARN_CHOICE
  builder.Finish(out.Finish());
  return CacheVariant::Read(*flatbuffers::GetRoot<format::CacheAttention>(builder.GetBufferPointer()), form);
}

// `change` is refused with `name` where that is read, and makes no difference where it is not.
void Check(size_t policy, uint32_t form, const char* name, bool is_read, const Change& change) {
  const Result<CacheVariant> read = Read(policy, form, change);
  if (!is_read) {
    EXPECT_TRUE(read.ok()) << kCachePolicies[policy].name << ", " << name << ": " << read.status().message();
    return;
  }
  EXPECT_EQ(read.status().code(), TARN_BAD_FORMAT) << kCachePolicies[policy].name << ", " << name;
  EXPECT_NE(std::string(read.status().message()).find(name), std::string::npos) << read.status().message();
}

void CheckEveryNumber(size_t policy, uint32_t form) {
  const uint32_t wanted = kCachePolicies[policy].AttributesOf(form);
#define TARN_SIZE(name, key, fallback, least, most)                                                  \
  for (const uint32_t value : {uint32_t{least} - 1, uint32_t{most} + 1}) {                           \
    Check(policy, form, #name, (wanted & reads::name) != 0, [value](Table* t) { t->name = value; }); \
  }
#define TARN_FLAG(name, ...)
#define TARN_LIST(name, key)                                                                                              \
  for (const auto& list : {std::vector<uint32_t>{}, std::vector<uint32_t>{3, 3}, std::vector<uint32_t>(kMaxSlots + 1)}) { \
    Check(policy, form, #name, (wanted & reads::name) != 0, [&](Table* t) { t->name = list; });                           \
  }
#define TARN_CHOICE(type, name, names, fallback) \
  Check(policy, form, #name, (wanted & reads::name) != 0, [](Table* t) { t->name = static_cast<type>(std::size(names)); });
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST, TARN_CHOICE)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
#undef TARN_CHOICE
}

TEST(CacheAttributes, EveryPolicyReadsItsOwnInEachOfItsForms) {
  for (size_t policy = 0; policy < kCachePolicyCount; ++policy) {
    for (const uint32_t form : {kCausalForm, kNoncausalForm, kCrossForm}) {
      const Result<CacheVariant> read = Read(policy, form, [](Table*) {});
      EXPECT_EQ(read.ok(), (kCachePolicies[policy].forms & form) != 0) << kCachePolicies[policy].name << ", form " << form;
      if (read.ok()) CheckEveryNumber(policy, form);
    }
  }
}

TEST(CacheAttributes, RefusesWhatNoPolicyHas) {
  const auto none = [](Table*) {};
  EXPECT_NE(std::string(Read(kCachePolicyCount, kCausalForm, none).status().message()).find("policy is"), std::string::npos);
  const auto endless = [](Table* t) { t->scale = std::numeric_limits<float>::infinity(); };
  EXPECT_NE(std::string(Read(0, kCausalForm, endless).status().message()).find("scale"), std::string::npos);
  for (const float cap : {NAN, INFINITY, -1.0f}) {
    const Change capped = [cap](Table* table) { table->soft_cap = cap; };
    EXPECT_NE(std::string(Read(0, kCausalForm, capped).status().message()).find("soft_cap"), std::string::npos);
  }
}

TEST(CacheAttributes, AConvolutionFitsIntoASegment) {
  const Change change = [](Table* t) {
    t->compression = Compression::kConv;
    t->compression_ratio = 7;
  };
  const Result<CacheVariant> read = Read(static_cast<size_t>(CachePolicy::kCompressive), kCausalForm, change);
  EXPECT_NE(std::string(read.status().message()).find("compression_ratio is above segment_len"), std::string::npos);
}

// Rows of a convolution that wait until their tokens leave the memory.
TEST(CacheAttributes, RowsOfAConvolution) {
  CacheAttributes a;
  a.segment_len = 6, a.mem_len = 8, a.cmem_len = 3, a.compression_ratio = 4;
  EXPECT_EQ(EarlyRows(a), 0u);
  a.compression = Compression::kConv;
  EXPECT_EQ(CompressedRows(a, 6), 2u);
  EXPECT_EQ(EarlyRows(a), 6u);  // three runs of 4, 6 and 6 tokens
  a.pad = CompressionPad::kLeftRemainder;
  EXPECT_EQ(PadOf(a, 6), 2u);
  EXPECT_EQ(PadOf(a, 5), 1u);
  EXPECT_EQ(CompressedRows(a, 5), 1u);  // the last two are lost
}

// Rows of some policies have no distance from a token.
TEST(CacheAttributes, ABiasByDistanceNeedsDistances) {
  const std::vector<Change> biases = {[](Table* t) { t->bias_behind = 3; }, [](Table* t) { t->bias_slopes = {1.0f, 0.5f}; }};
  for (size_t policy = 0; policy < kCachePolicyCount; ++policy) {
    for (const uint32_t form : {kCausalForm, kNoncausalForm, kCrossForm}) {
      if ((kCachePolicies[policy].forms & form) == 0) continue;
      for (const Change& bias : biases) {
        const auto whole = [&](Table* t) { t->dilation = 1, bias(t); };
        const auto dilated = [&](Table* t) { t->dilation = 2, bias(t); };
        const auto id = static_cast<CachePolicy>(policy);
        const bool known =
            form != kCrossForm && (id == CachePolicy::kFull || id == CachePolicy::kWindow || id == CachePolicy::kL2g);
        EXPECT_EQ(Read(policy, form, whole).ok(), known) << kCachePolicies[policy].name << ", form " << form;
        if (id == CachePolicy::kWindow && form == kCausalForm) {
          EXPECT_FALSE(Read(policy, form, dilated).ok());
        }
      }
    }
  }
}

TEST(CacheAttributes, RefusesABiasThatCannotBe) {
  const auto refused = [](const char* name, const Change& change) {
    const Result<CacheVariant> read = Read(0, kCausalForm, change);
    EXPECT_EQ(read.status().code(), TARN_BAD_FORMAT) << name;
    EXPECT_NE(std::string(read.status().message()).find(name), std::string::npos) << read.status().message();
  };
  refused("bias_behind", [](Table* t) { t->bias_ahead = 1; });
  refused("bias_behind", [](Table* t) { t->bias_behind = kMaxRows + 1; });
  refused("bias_ahead", [](Table* t) { t->bias_behind = 1, t->bias_ahead = kMaxRows + 1; });
  refused("bias_slopes", [](Table* t) { t->bias_slopes = {1.0f}; });
  refused("bias_slopes", [](Table* t) { t->bias_slopes = {1.0f, NAN}; });
}

TEST(CacheAttributes, RefusesBlocksThatWouldNeverBeComplete) {
  const auto small = [](Table* t) { t->capacity = 5; };
  const auto policy = static_cast<size_t>(CachePolicy::kMemoryCompressed);
  const std::string message = Read(policy, kCausalForm, small).status().message();
  EXPECT_NE(message.find("complete"), std::string::npos) << message;
  for (const char* field : {"max_context", "compression_factor"}) EXPECT_EQ(message.find(field), std::string::npos) << message;
}

}  // namespace
}  // namespace tarn
