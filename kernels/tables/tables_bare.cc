// One table, for the CPU that the build is for: the reference's, whose loops are small, with the int8 layer that nearly all the
// time goes to.
#include <cstring>

#include "core/linked_ops.h"
#include "kernels/dense/int8_bare.h"
#include "kernels/reference/reference_table.h"

namespace tarn {
namespace {

// `kernel` is called by these ops only (tests/bare/kernels_of_ops_test.py reads this list).
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
  KeepFor(table.layer_norm, {"Norm"});
  KeepFor(table.rms_norm, {"Norm"});
  KeepFor(table.relu, {"Activation"});
  KeepFor(table.gelu, {"Activation"});
  KeepFor(table.gelu_tanh, {"Activation"});
  KeepFor(table.tanh, {"Activation"});
  KeepFor(table.silu_mul, {"SiluMul"});
  KeepFor(table.sinusoid, {"AddSinusoid", "RopeAngles"});
  KeepFor(table.rope, {"Rope"});
  KeepFor(table.forget_gate, {"LinearState"});
  KeepFor(table.vector_gate, {"LinearState"});
  KeepFor(table.scaled_sigmoid, {"LinearState"});
  KeepFor(table.l2_normalize, {"LinearState", "NoncausalLinear"});
  KeepFor(table.features, {"LinearState", "NoncausalLinear"});
  KeepFor(table.linear_step, {"LinearState"});
  KeepFor(table.linear_chunk, {"LinearState"});
  KeepFor(table.linear_write, {"NoncausalLinear"});
  KeepFor(table.linear_read, {"NoncausalLinear"});
  KeepFor(table.delta_step, {"LinearState"});
  KeepFor(table.delta_chunk, {"LinearState"});
  KeepFor(table.slot_control_step, {"SlotMemory"});
  KeepFor(table.slot_control_chunk, {"SlotMemory"});
  KeepFor(table.slot_step, {"SlotMemory"});
  KeepFor(table.slot_chunk, {"SlotMemory"});
  KeepFor(table.abc_block, {"NoncausalSlots"});
  KeepFor(table.nearest_slot, {"NoncausalSlots"});
  KeepFor(table.slot_write, {"NoncausalSlots"});
  KeepFor(table.slot_read, {"NoncausalSlots"});
  KeepFor(table.cache_attend, {"CacheAttention", "NoncausalCache", "ClusteredAttention", "ProbSparse"});
  KeepFor(table.score_rows, {"ClusteredAttention"});
  KeepFor(table.score_peak, {"ProbSparse"});
  KeepFor(table.softmax_rows, {"ClusteredAttention"});
  KeepFor(table.weigh_rows, {"ClusteredAttention"});
  KeepFor(table.nearest_code, {"ClusteredAttention"});
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
