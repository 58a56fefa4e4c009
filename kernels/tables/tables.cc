// The tables: the reference's, and one for each target that was compiled and that this CPU runs.
#include <cstring>

#include "kernels/features/features.h"
#include "kernels/groups.h"
#include "kernels/kernels.h"
#include "kernels/slot_controls/slot_controls.h"
#include "kernels/targets.h"

namespace tarn {
namespace {

constexpr size_t CountBits(int64_t bits) { return bits == 0 ? 0 : 1 + CountBits(bits & (bits - 1)); }

constexpr size_t kMaxTables = CountBits(HWY_TARGETS) + 1;

constexpr void (*kGroups[])(int64_t target, Kernels& table) = {
    FillNorms,         FillActivations, FillCausalConv,  FillRecurrence, FillMixing,      FillEmbedding,   FillPosition,
    FillGate,          FillRunningMax,  FillStorage,     FillDamping,    FillLinearStep,  FillLinearChunk, FillLinearNoncausal,
    FillDeltaStep,     FillDeltaChunk,  FillReplaceStep, FillAbcBlock,   FillNearestSlot, FillSlotStep,    FillSlotChunk,
    FillSlotNoncausal, FillCache,       FillScores,      FillHamming,    FillDense,
};

struct Tables {
  Tables() {
    // Highway numbers its targets so that a better one is a lower bit.
    for (int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
      const int64_t target = left & -left;
      Kernels& table = tables[count];
      table = Reference();
      table.name = hwy::TargetName(target);
      for (auto fill : kGroups) fill(target, table);
#define TARN_FILL(id, ...) table.features[static_cast<size_t>(FeatureMap::k##id)] = id##FeaturesFor(target);
      TARN_FEATURE_MAPS(TARN_FILL)
#undef TARN_FILL
#define TARN_FILL(id, ...)                                                        \
  table.slot_control_step[CausalPlace(SlotControl::k##id)] = id##StepFor(target); \
  table.slot_control_chunk[CausalPlace(SlotControl::k##id)] = id##ChunkFor(target);
#define TARN_IGNORE(...)
      TARN_SLOT_CONTROLS(TARN_FILL, TARN_IGNORE)
#undef TARN_FILL
#undef TARN_IGNORE
      Finish();
    }
    tables[count] = Reference();
    Finish();
  }

  void Finish() {
    names[count] = tables[count].name;
    ++count;
  }

  Kernels tables[kMaxTables];
  const char* names[kMaxTables];
  size_t count = 0;
};

const Tables& AllTables() {
  static const Tables tables;
  return tables;
}

}  // namespace

Span<const char* const> KernelNames() { return {AllTables().names, AllTables().count}; }

const Kernels* SelectKernels(const char* name) {
  const Tables& all = AllTables();
  if (name == nullptr) return &all.tables[0];
  for (size_t i = 0; i < all.count; ++i) {
    if (std::strcmp(name, all.names[i]) == 0) return &all.tables[i];
  }
  return nullptr;
}

}  // namespace tarn
