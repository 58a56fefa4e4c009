// The tables themselves.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/kernels.h"
#include "tests/kernels/kernel_testing.h"

namespace tarn {
namespace {

TEST(KernelTable, ReferenceIsLastAndTheBestIsTheDefault) {
  const Span<const char* const> names = KernelNames();
  ASSERT_GE(names.size(), 2u);  // every CPU runs at least the baseline it was compiled for
  EXPECT_STREQ(names[names.size() - 1], "reference");
  EXPECT_EQ(SelectKernels(nullptr), SelectKernels(names[0]));
}

TEST(KernelTable, NamesAreDistinctAndFound) {
  const Span<const char* const> names = KernelNames();
  for (size_t i = 0; i < names.size(); ++i) {
    const Kernels* kernels = SelectKernels(names[i]);
    ASSERT_NE(kernels, nullptr) << names[i];
    EXPECT_STREQ(kernels->name, names[i]);
    for (size_t j = 0; j < i; ++j) EXPECT_STRNE(names[i], names[j]);
  }
  EXPECT_EQ(SelectKernels("PDP-11"), nullptr);
  EXPECT_EQ(SelectKernels(""), nullptr);
}

// Everything but the name is a pointer; a table that lacks one would crash a session.
TEST(KernelTable, EveryEntryIsFilled) {
  testing::ForEachTable([](const Kernels& kernels) {
    const char* bytes = reinterpret_cast<const char*>(&kernels);
    for (size_t at = 0; at < sizeof(Kernels); at += sizeof(void*)) {
      void* entry;
      std::memcpy(&entry, bytes + at, sizeof(entry));
      EXPECT_NE(entry, nullptr) << "entry " << at / sizeof(void*);
    }
  });
}

// A table that were left as a copy of the reference would pass every comparison.
TEST(KernelTable, VectorTablesAreNotTheReference) {
  testing::ForEachTable([](const Kernels& kernels) {
    if (std::strcmp(kernels.name, "reference") == 0) return;
    EXPECT_NE(kernels.layer_norm, Reference().layer_norm);
    EXPECT_NE(kernels.gelu, Reference().gelu);
    EXPECT_NE(kernels.scale_i8, Reference().scale_i8);
    EXPECT_NE(kernels.rope, Reference().rope);
    EXPECT_NE(kernels.forget_gate, Reference().forget_gate);
    for (size_t i = 0; i < kFeatureMapCount; ++i) EXPECT_NE(kernels.features[i], Reference().features[i]);
    EXPECT_NE(kernels.linear_step, Reference().linear_step);
    EXPECT_NE(kernels.linear_chunk, Reference().linear_chunk);
    for (const SlotControl control :
         {SlotControl::kAbcMlp, SlotControl::kClusteringOnline, SlotControl::kGsa, SlotControl::kLunaCausal}) {
      const size_t i = static_cast<size_t>(control);
      EXPECT_NE(kernels.slot_control_step[i], Reference().slot_control_step[i]);
    }
    EXPECT_NE(kernels.linear_write, Reference().linear_write);
    EXPECT_NE(kernels.linear_read, Reference().linear_read);
    EXPECT_NE(kernels.damp_features, Reference().damp_features);
    EXPECT_NE(kernels.abc_block, Reference().abc_block);
    EXPECT_NE(kernels.nearest_slot, Reference().nearest_slot);
    EXPECT_NE(kernels.slot_write, Reference().slot_write);
    EXPECT_NE(kernels.slot_read, Reference().slot_read);
    EXPECT_NE(kernels.slot_step, Reference().slot_step);
    EXPECT_NE(kernels.slot_chunk, Reference().slot_chunk);
    EXPECT_NE(kernels.score_rows, Reference().score_rows);
    EXPECT_NE(kernels.score_peak, Reference().score_peak);
    EXPECT_NE(kernels.softmax_rows, Reference().softmax_rows);
    EXPECT_NE(kernels.weigh_rows, Reference().weigh_rows);
    EXPECT_NE(kernels.nearest_code, Reference().nearest_code);
    EXPECT_NE(kernels.cache_attend, Reference().cache_attend);
    EXPECT_NE(kernels.dense_f32, Reference().dense_f32);
  });
}

}  // namespace
}  // namespace tarn
