// Control by the global tokens of L2G (MATH 1.8.6): slot i takes the token at positions[i], and nothing is forgotten.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/global.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// weight_j = 1 where positions_j = t; a masked slot is empty while positions_j > t. Positions have 32 bits: a later t is none of
// them, and behind all of them.
HWY_NOINLINE void PutGlobal(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const size_t lanes = hn::Lanes(d);
  const uint64_t t = a.tokens_seen + token;
  const auto now = hn::Set(du, static_cast<uint32_t>(std::min<uint64_t>(t, UINT32_MAX)));
  const VF written = hn::Set(d, t <= UINT32_MAX ? 1.0f : 0.0f), empty = hn::Set(d, a.attributes.mask_empty ? -HUGE_VALF : 0.0f);
  for (size_t j = 0; j < a.slots; j += lanes) {
    const size_t left = a.slots - j;
    const auto positions = hn::LoadN(du, a.positions + j, left);
    hn::StoreN(hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(positions, now)), written), d, weight + j, left);
    hn::StoreN(hn::IfThenElseZero(hn::RebindMask(d, hn::Gt(positions, now)), empty), d, bias + j, left);
  }
}

void GlobalStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<PutGlobal>(a, decay, write, bias);
}

bool GlobalChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<PutGlobal>(a, carry, gain, weight, bias);
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(Global)
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// L2G's global part (MATH 1.8.6): b_t = e_i at the position of the i-th global token.
void GlobalRow(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const uint64_t t = a.tokens_seen + token;
  for (size_t j = 0; j < a.slots; ++j) {
    weight[j] = a.positions[j] == t ? 1.0f : 0.0f;
    bias[j] = EmptyBias(a, a.positions[j] > t);
  }
}

}  // namespace

void GlobalStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<GlobalRow>(a, decay, write, bias);
}

bool GlobalChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<GlobalRow>(a, carry, gain, weight, bias);
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
