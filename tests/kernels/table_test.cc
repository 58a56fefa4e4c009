// The tables themselves.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

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
      const bool panels = at == offsetof(Kernels, pack_panels) || at == offsetof(Kernels, dense_qdu8_panel);
      if (panels && kernels.dense_qdu8_planes == Reference().dense_qdu8_planes) continue;
      EXPECT_NE(entry, nullptr) << "entry " << at / sizeof(void*);
    }
  });
}

// Whether the target has f64 vectors, and products that are not rounded before they are subtracted.
bool HasF64MulAdd([[maybe_unused]] const char* target) {
#if !defined(__arm__)
  for (const char* name : {"AVX2", "AVX3_DL", "NEON_WITHOUT_AES", "NEON", "SVE", "SVE2"}) {
    if (std::strcmp(target, name) == 0) return true;
  }
#endif
  return false;
}

// Where the reference's own entries lie in a table. What is left as a copy of the reference passes every comparison, and the oracle
// would be what runs.
std::vector<size_t> OffsetsOfTheReference(const char* target) {
  std::vector<size_t> offsets;
  // The angle is reduced in f64, which the C library does where vectors cannot.
  if (!HasF64MulAdd(target)) offsets.push_back(offsetof(Kernels, sinusoid));
  return offsets;
}

TEST(KernelTable, VectorTablesTakeOnlyWhatIsListedFromTheReference) {
  testing::ForEachTable([](const Kernels& kernels) {
    if (std::strcmp(kernels.name, "reference") == 0) return;
    std::vector<size_t> actual;
    const char* bytes = reinterpret_cast<const char*>(&kernels);
    const char* reference = reinterpret_cast<const char*>(&Reference());
    for (size_t at = sizeof(kernels.name); at < sizeof(Kernels); at += sizeof(void*)) {
      if (std::memcmp(bytes + at, reference + at, sizeof(void*)) == 0) actual.push_back(at);
    }
    EXPECT_EQ(OffsetsOfTheReference(kernels.name), actual) << "offsets into Kernels";
  });
}

}  // namespace
}  // namespace tarn
