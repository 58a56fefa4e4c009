// Control by the mean pooling of the compressive transformer (MATH 1.8.7 a): token t joins slot floor(n t / max_len), which keeps
// the mean of its members.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/compressive_mean.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/slot_controls/mean-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

HWY_INLINE size_t PooledSlot(const SlotControlArgs& a, size_t token) {
  return static_cast<size_t>(a.slots * (a.tokens_seen + token) / a.attributes.max_len);
}

void CompressiveMeanStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  JoinSlot(a, PooledSlot(a, 0), decay, write, bias);
}

// With c_0 members before the chunk and c_t after token t: K~_t = (c_0 K~_0 + sum of its new members k_i) / c_t, so carry_t =
// c_0/c_t, gain_t = 1/c_t, weight_i = 1 for members. A token changes one slot: the row before it is copied for the others. Slots
// come in order, and all tokens of one stand side by side.
bool CompressiveMeanChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const size_t n = a.slots;
  Fill(n, 1.0f, carry);
  for (size_t j = 0; j < n; ++j) gain[j] = a.mass[j] > 0.0f ? 1.0f / a.mass[j] : 0.0f;
  PutBias(a, a.mass, bias);
  Fill(a.tokens * n, 0.0f, weight);
  size_t slot = PooledSlot(a, 0);
  double before = static_cast<double>(a.mass[slot]), members = before;
  for (size_t t = 0; t < a.tokens; ++t) {
    const size_t row = t * n;
    if (t > 0) {
      std::copy_n(carry + row - n, n, carry + row);
      std::copy_n(gain + row - n, n, gain + row);
      std::copy_n(bias + row - n, n, bias + row);
    }
    if (PooledSlot(a, t) != slot) {
      slot = PooledSlot(a, t);
      before = members = static_cast<double>(a.mass[slot]);
    }
    members += 1.0;
    carry[row + slot] = static_cast<float>(before / members);
    gain[row + slot] = static_cast<float>(1.0 / members);
    weight[row + slot] = 1.0f;
    bias[row + slot] = 0.0f;
    a.mass[slot] = static_cast<float>(std::min(members, kSlotMostMembers));
  }
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(CompressiveMean)
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// Compressive transformer, mean pooling (MATH 1.8.7 a): token t joins slot floor(n t / max_len).
uint64_t PooledSlot(const SlotControlArgs& a, size_t token) { return a.slots * (a.tokens_seen + token) / a.attributes.max_len; }

}  // namespace

void CompressiveMeanStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  JoinSlot(a, PooledSlot(a, 0), decay, write, bias);
}

// K~_t = (c_0 K~_0 + sum of the members k_i) / c_t: carry_t = c_0/c_t, gain_t = 1/c_t, weight_i = 1 for members.
bool CompressiveMeanChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double before = a.mass[j];
    double members = before;
    for (size_t t = 0; t < a.tokens; ++t) {
      const bool joins = PooledSlot(a, t) == j;
      if (joins) members += 1.0;
      carry[t * a.slots + j] = members > 0.0 ? static_cast<float>(before / members) : 1.0f;
      gain[t * a.slots + j] = members > 0.0 ? static_cast<float>(1.0 / members) : 0.0f;
      weight[t * a.slots + j] = joins ? 1.0f : 0.0f;
      bias[t * a.slots + j] = EmptyBias(a, !(members > 0.0));
    }
    a.mass[j] = static_cast<float>(std::fmin(members, kSlotMostMembers));
  }
  return true;
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
