// What a model file may say of a cache: every policy of the list, every number that it reads out of its bounds.
#include "runtime/ops/attention/cache/cache_attributes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tarn {
namespace {

struct Table : CacheAttributes {
#define TARN_IGNORE(...)
#define TARN_LIST(name, ...) std::vector<uint32_t> name = {1, 5, 40};
  TARN_CACHE_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_LIST)
#undef TARN_IGNORE
#undef TARN_LIST
};

using Change = std::function<void(Table*)>;

// Of a table that every policy takes, but for what `change` says.
Result<CacheVariant> Read(size_t policy, uint32_t form, const Change& change) {
  Table table;
#define TARN_SIZE(name, ...) table.name = 6;
#define TARN_IGNORE(...)
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_IGNORE, TARN_IGNORE)
#undef TARN_SIZE
#undef TARN_IGNORE
  change(&table);
  flatbuffers::FlatBufferBuilder builder;
  const format::Heads heads(2, 1, 4, 4);
#define TARN_IGNORE(...)
#define TARN_LIST(name, ...) const auto name = builder.CreateVector(table.name);
  TARN_CACHE_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_LIST)
#undef TARN_IGNORE
#undef TARN_LIST
  format::CacheAttentionBuilder out(builder);
  out.add_heads(&heads);
  out.add_policy(static_cast<uint8_t>(policy));
  out.add_scale(table.scale);
  out.add_soft_cap(table.soft_cap);
#define TARN_NUMBER(name, ...) out.add_##name(table.name);
#define TARN_LIST(name, ...) out.add_##name(name);
  TARN_CACHE_ATTRIBUTES(TARN_NUMBER, TARN_NUMBER, TARN_LIST)
#undef TARN_NUMBER
#undef TARN_LIST
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
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
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

TEST(CacheAttributes, RefusesBlocksThatWouldNeverBeComplete) {
  const auto small = [](Table* t) { t->capacity = 5; };
  const auto policy = static_cast<size_t>(CachePolicy::kMemoryCompressed);
  const std::string message = Read(policy, kCausalForm, small).status().message();
  EXPECT_NE(message.find("complete"), std::string::npos) << message;
  for (const char* field : {"max_context", "compression_factor"}) EXPECT_EQ(message.find(field), std::string::npos) << message;
}

}  // namespace
}  // namespace tarn
