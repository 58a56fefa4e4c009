// Who fills a table: one function per Highway source. For those sources and tables/tables.cc.
#ifndef TARN_KERNELS_GROUPS_H_
#define TARN_KERNELS_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/targets.h"

namespace tarn {

// Each sets its kernels of `table` to those compiled for `target`, one bit of HWY_TARGETS. A kernel that a target cannot run better
// than the scalar reference stays as it is.
void FillNorms(int64_t target, Kernels& table);
void FillActivations(int64_t target, Kernels& table);
void FillCausalConv(int64_t target, Kernels& table);
void FillRecurrence(int64_t target, Kernels& table);
void FillMixing(int64_t target, Kernels& table);
void FillEmbedding(int64_t target, Kernels& table);
void FillPosition(int64_t target, Kernels& table);
void FillGate(int64_t target, Kernels& table);
void FillRunningMax(int64_t target, Kernels& table);
void FillStorage(int64_t target, Kernels& table);
void FillDamping(int64_t target, Kernels& table);
void FillLinearStep(int64_t target, Kernels& table);
void FillLinearChunk(int64_t target, Kernels& table);
void FillLinearNoncausal(int64_t target, Kernels& table);
void FillDeltaStep(int64_t target, Kernels& table);
void FillDeltaChunk(int64_t target, Kernels& table);
void FillReplaceStep(int64_t target, Kernels& table);
void FillAbcBlock(int64_t target, Kernels& table);
void FillNearestSlot(int64_t target, Kernels& table);
void FillSlotStep(int64_t target, Kernels& table);
void FillSlotChunk(int64_t target, Kernels& table);
void FillSlotNoncausal(int64_t target, Kernels& table);
void FillCache(int64_t target, Kernels& table);
void FillScores(int64_t target, Kernels& table);
void FillHamming(int64_t target, Kernels& table);
void FillDense(int64_t target, Kernels& table);

// Where HWY_DISPATCH_TABLE(F) holds the version for `target`. Computed from a local ChosenTarget: Highway's own, which is global,
// stays as the process has it.
inline size_t TargetIndex(int64_t target) {
  // The table has a single entry where a single target is compiled.
  if constexpr ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0) return 0;
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex();
}

}  // namespace tarn

#endif  // TARN_KERNELS_GROUPS_H_
