// One table, for the CPU that the build is for: the reference's, whose loops are small, with the int8 layer that nearly all the
// time goes to.
#include <cstring>

#include "core/linked_ops.h"
#include "kernels/dense/int8_bare.h"
#include "kernels/op_kernels.h"
#include "kernels/reference/reference_table.h"

namespace tarn {
namespace {

// `kernel` is called by these ops only.
template <typename F>
constexpr void KeepFor(F& kernel, std::initializer_list<std::string_view> ops) {
  for (const std::string_view op : ops) {
    if (IsLinked(op)) return;
  }
  kernel = nullptr;
}

template <typename F, size_t kCount>
constexpr void KeepFor(F (&kernels)[kCount], std::initializer_list<std::string_view> ops) {
  for (F& kernel : kernels) KeepFor(kernel, ops);
}

constexpr Kernels MakeTable() {
  Kernels table = kReferenceTable;
  table.name = kInt8BareName;
  table.dense_qdu8_qc8w = DenseQdu8Qc8wBare;
  table.quantize_qd8 = nullptr;  // for weights that are packed, and nothing is
#define TARN_KEEP(kernel, ...) KeepFor(table.kernel, {__VA_ARGS__});
  TARN_OP_KERNELS(TARN_KEEP)
#undef TARN_KEEP
  return table;
}

constexpr Kernels kTable = MakeTable();
constexpr const char* kNames[] = {kInt8BareName};

}  // namespace

Span<const char* const> KernelNames() { return {kNames, 1}; }

const Kernels* SelectKernels(const char* name) {
  return name == nullptr || std::strcmp(name, kTable.name) == 0 ? &kTable : nullptr;
}

// What the reference's loops want.
uint64_t LinearChunkScratch(uint64_t tokens, uint64_t, uint64_t) { return tokens; }
uint64_t DeltaChunkScratch(uint64_t tokens, uint64_t, uint64_t value_dim) { return tokens * (value_dim + 1); }
uint64_t SlotChunkScratch(uint64_t tokens, uint64_t slots, uint64_t, uint64_t) { return tokens + slots; }
uint64_t CacheScratch(uint64_t, uint64_t, uint64_t, uint64_t) { return 0; }
uint64_t ScoreScratch(uint64_t, uint64_t) { return 0; }

}  // namespace tarn
