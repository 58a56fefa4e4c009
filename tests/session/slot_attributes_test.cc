// What a model file may say of a slot memory: every number out of its bounds, every choice out of its list, for every control.
#include "runtime/ops/attention/slot/slot_attributes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <string>

namespace tarn {
namespace {

using Change = std::function<void(format::SlotMemoryBuilder&)>;

constexpr char kNothing[] = "";

// The message that refuses a table of that control, with what it reads and with what `change` says of the field `changed`: a table
// has every field once.
std::string Refusal(size_t control, const Change& change, const std::string& changed = kNothing) {
  flatbuffers::FlatBufferBuilder builder;
  const format::Heads heads(2, 1, 4, 4);
  format::SlotMemoryBuilder table(builder);
  table.add_heads(&heads);
  if (changed != "num_slots") table.add_num_slots(3);
  if (changed != "max_len") table.add_max_len(7);
  if (changed != "iterations") table.add_iterations(2);
  if (changed != "control") table.add_control(static_cast<uint8_t>(control));
  change(table);
  builder.Finish(table.Finish());
  const auto read = ReadSlotAttributes(*flatbuffers::GetRoot<format::SlotMemory>(builder.GetBufferPointer()));
  if (read.ok()) return kNothing;
  EXPECT_EQ(read.status().code(), TARN_BAD_FORMAT);
  return read.status().message();
}

void ExpectRefused(size_t control, const char* name, const Change& change) {
  EXPECT_NE(Refusal(control, change, name).find(name), std::string::npos) << kSlotControls[control].name << ": " << name;
}

TEST(SlotAttributes, OfEveryControl) {
  for (size_t control = 0; control < kSlotControlCount; ++control) {
    const SlotControlInfo& info = kSlotControls[control];
    SCOPED_TRACE(info.name);
    EXPECT_EQ(Refusal(control, [](format::SlotMemoryBuilder&) {}), kNothing);
#define TARN_CHECK_CHOICE(type, name, list, ...)                                                                      \
  if (std::string(#name) != "control") {                                                                              \
    ExpectRefused(control, #name,                                                                                     \
                  [](format::SlotMemoryBuilder& table) { table.add_##name(static_cast<uint8_t>(std::size(list))); }); \
  }
#define TARN_CHECK_SIZE(type, name, most, readers)                                                \
  for (const uint32_t value : {0u, most + 1u}) {                                                  \
    const Change change = [value](format::SlotMemoryBuilder& table) { table.add_##name(value); }; \
    const bool reads = (info.attributes & (readers)) != 0;                                        \
    EXPECT_EQ(Refusal(control, change, #name).find(#name) != std::string::npos, reads);           \
  }
#define TARN_CHECK_NUMBER(name, fallback, bounds)                                                          \
  for (const float value : {NAN, INFINITY, -1.0f}) {                                                       \
    if (IsWithin(bounds, value)) continue;                                                                 \
    ExpectRefused(control, #name, [value](format::SlotMemoryBuilder& table) { table.add_##name(value); }); \
  }
#define TARN_IGNORE(...)
    TARN_SLOT_ATTRIBUTES(TARN_CHECK_CHOICE, TARN_CHECK_SIZE, TARN_CHECK_NUMBER, TARN_IGNORE)
#undef TARN_CHECK_CHOICE
#undef TARN_CHECK_SIZE
#undef TARN_CHECK_NUMBER
#undef TARN_IGNORE
    for (const uint32_t count : {0u, kMaxSlots + 1}) {
      ExpectRefused(control, "num_slots", [count](format::SlotMemoryBuilder& table) { table.add_num_slots(count); });
    }
  }
}

TEST(SlotAttributes, RefusesWhatNoControlHas) {
  const size_t abc = static_cast<size_t>(SlotControl::kAbcMlp);
  ExpectRefused(abc, "control",
                [](format::SlotMemoryBuilder& table) { table.add_control(static_cast<uint8_t>(kSlotControlCount)); });
  ExpectRefused(abc, "no range", [](format::SlotMemoryBuilder& table) {
    table.add_logit_min(2.0f);
    table.add_logit_max(1.0f);
  });
  ExpectRefused(abc, "mass_bias", [](format::SlotMemoryBuilder& table) { table.add_mass_bias(true); });
  ExpectRefused(static_cast<size_t>(SlotControl::kGsa), "own_value_control",
                [](format::SlotMemoryBuilder& table) { table.add_own_value_control(true); });
}

// Model files have these numbers.
TEST(SlotAttributes, NumbersOfControlsStay) {
  const char* const names[] = {"abc_mlp",           "linformer", "assigned",    "global",    "compressive_mean",
                               "clustering_online", "gsa",       "luna_causal", "clustering"};
  ASSERT_LE(std::size(names), kSlotControlCount);
  for (size_t i = 0; i < std::size(names); ++i) EXPECT_STREQ(kSlotControls[i].name, names[i]);
  EXPECT_STREQ(kSlotActivationNames[2], "sigmoid");
  EXPECT_STREQ(kSlotNormalizationNames[1], "frozen");
}

}  // namespace
}  // namespace tarn
