// The decode step of slot memory (MATH F2; ABC eq. 4-5). Two passes, with the softmax over slots between them: K~ is kept
// transposed, so that the logits of a vector of slots grow together.
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_step.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/rank-one-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

template <bool kMasked>
HWY_INLINE VF LoadSlots(const float* p, size_t count) {
  return kMasked ? hn::LoadN(DF(), p, count) : hn::LoadU(DF(), p);
}

// One vector of slots s of one row of K~, which lies at `cell`: K <- decay*K + write*k (kUpdate), logit_g += q_g*K.
template <bool kUpdate, size_t kQueries, bool kMasked>
HWY_INLINE void KeyCell(VF s, float* cell, size_t count, VF decay, VF write, VF k, VF q0, VF q1, VF& l0, VF& l1) {
  const DF d;
  if constexpr (kUpdate) {
    s = hn::MulAdd(decay, s, hn::Mul(write, k));
    if constexpr (kMasked) {
      hn::StoreN(s, d, cell, count);
    } else {
      hn::StoreU(s, d, cell);
    }
  }
  l0 = hn::MulAdd(q0, s, l0);
  if constexpr (kQueries > 1) l1 = hn::MulAdd(q1, s, l1);
}

HWY_INLINE VF Logit(VF even, VF odd, float scale, VF bias) { return hn::MulAdd(hn::Add(even, odd), hn::Set(DF(), scale), bias); }

// kVectors (1 or 2) vectors of slots from `slot` on, for the queries g and g + 1; controls and logits stay in registers. Even and
// odd rows have sums of their own, so that an addition need not wait for the one before it.
template <bool kUpdate, size_t kQueries, size_t kVectors, bool kMasked>
HWY_INLINE void KeyTile(const SlotStepArgs& a, size_t g, size_t slot, size_t count) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const VF zero = hn::Zero(d);
  const size_t next = slot + lanes;  // of the second vector
  VF decay0 = zero, decay1 = zero, write0 = zero, write1 = zero;
  if constexpr (kUpdate) {
    decay0 = LoadSlots<kMasked>(a.decay + slot, count);
    write0 = LoadSlots<kMasked>(a.write + slot, count);
    if constexpr (kVectors > 1) decay1 = hn::LoadU(d, a.decay + next);
    if constexpr (kVectors > 1) write1 = hn::LoadU(d, a.write + next);
  }
  // Copies: what is stored below might be a field of `a`, as far as the compiler knows.
  const size_t slots = a.slots, key_dim = a.key_dim;
  const float* k = a.k;
  const float* q = a.q + g * key_dim;
  const float* r = kQueries > 1 ? q + key_dim : q;
  // even/odd row, query, vector
  VF e00 = zero, e01 = zero, e10 = zero, e11 = zero, o00 = zero, o01 = zero, o10 = zero, o11 = zero;
  float* cell = a.keys + slot;
  size_t x = 0;
  for (; x + 2 <= key_dim; x += 2, cell += 2 * slots) {
    const VF k0 = hn::Set(d, k[x]), k1 = hn::Set(d, k[x + 1]);
    const VF q0 = hn::Set(d, q[x]), q1 = hn::Set(d, q[x + 1]);
    const VF r0 = hn::Set(d, r[x]), r1 = hn::Set(d, r[x + 1]);
    // All loads before the first store: they need not wait for it, but only we know that the rows are apart.
    float *even = cell, *odd = cell + slots;
    const VF s00 = LoadSlots<kMasked>(even, count), s10 = LoadSlots<kMasked>(odd, count);
    const VF s01 = kVectors > 1 ? hn::LoadU(d, even + lanes) : zero, s11 = kVectors > 1 ? hn::LoadU(d, odd + lanes) : zero;
    KeyCell<kUpdate, kQueries, kMasked>(s00, even, count, decay0, write0, k0, q0, r0, e00, e10);
    KeyCell<kUpdate, kQueries, kMasked>(s10, odd, count, decay0, write0, k1, q1, r1, o00, o10);
    if constexpr (kVectors > 1) {
      KeyCell<kUpdate, kQueries, false>(s01, even + lanes, 0, decay1, write1, k0, q0, r0, e01, e11);
      KeyCell<kUpdate, kQueries, false>(s11, odd + lanes, 0, decay1, write1, k1, q1, r1, o01, o11);
    }
  }
  if (x < key_dim) {
    const VF k0 = hn::Set(d, k[x]), q0 = hn::Set(d, q[x]), r0 = hn::Set(d, r[x]);
    const VF s0 = LoadSlots<kMasked>(cell, count), s1 = kVectors > 1 ? hn::LoadU(d, cell + lanes) : zero;
    KeyCell<kUpdate, kQueries, kMasked>(s0, cell, count, decay0, write0, k0, q0, r0, e00, e10);
    if constexpr (kVectors > 1) KeyCell<kUpdate, kQueries, false>(s1, cell + lanes, 0, decay1, write1, k0, q0, r0, e01, e11);
  }
  float* logits = a.scratch + g * a.slots + slot;
  if constexpr (kMasked) {
    const VF bias = hn::LoadN(d, a.bias + slot, count);
    hn::StoreN(Logit(e00, o00, a.scale, bias), d, logits, count);
    if constexpr (kQueries > 1) hn::StoreN(Logit(e10, o10, a.scale, bias), d, logits + a.slots, count);
  } else {
    const VF bias = hn::LoadU(d, a.bias + slot);
    hn::StoreU(Logit(e00, o00, a.scale, bias), d, logits);
    if constexpr (kQueries > 1) hn::StoreU(Logit(e10, o10, a.scale, bias), d, logits + a.slots);
  }
  if constexpr (kVectors > 1) {
    const VF bias = hn::LoadU(d, a.bias + next);
    hn::StoreU(Logit(e01, o01, a.scale, bias), d, logits + lanes);
    if constexpr (kQueries > 1) hn::StoreU(Logit(e11, o11, a.scale, bias), d, logits + a.slots + lanes);
  }
}

// The first two queries read while the keys are written; further pairs read the tile again, which is then in the first cache.
template <size_t kVectors, bool kMasked>
HWY_INLINE void KeyColumns(const SlotStepArgs& a, size_t slot, size_t count) {
  if (a.queries == 1) return KeyTile<true, 1, kVectors, kMasked>(a, 0, slot, count);
  KeyTile<true, 2, kVectors, kMasked>(a, 0, slot, count);
  size_t g = 2;
  for (; g + 2 <= a.queries; g += 2) KeyTile<false, 2, kVectors, kMasked>(a, g, slot, count);
  if (g < a.queries) KeyTile<false, 1, kVectors, kMasked>(a, g, slot, count);
}

void SlotStep(const SlotStepArgs& a) {
  const size_t lanes = hn::Lanes(DF());
  size_t j = 0;
  for (; j + 2 * lanes <= a.slots; j += 2 * lanes) KeyColumns<2, false>(a, j, 0);
  for (; j + lanes <= a.slots; j += lanes) KeyColumns<1, false>(a, j, 0);
  if (j < a.slots) KeyColumns<1, true>(a, j, a.slots - j);

  for (size_t g = 0; g < a.queries; ++g) {
    float* p = a.scratch + g * a.slots;
    float top = -HUGE_VALF;
    const float sum = ExpRow(a.slots, p, top);
    if (sum != 0.0f) Scale(a.slots, 1.0f / sum, p);  // a sum of 0: every slot is masked, and o is 0
  }
  const bool own = a.value_decay != nullptr;
  RankOneUpdateAndRead({a.slots, a.value_dim, a.queries, own ? a.value_decay : a.decay, 1, true, own ? a.value_write : a.write, a.v,
                        1.0f, a.scratch, a.slots, a.values, a.o, a.value_dim, false});
}

void FillSlotStep(Kernels& table) { table.slot_step = SlotStep; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillSlotStep);
void FillSlotStep(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotStep)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
