// A chunk of tokens of slot memory with factored controls (MATH 0.2, "F2"), as matrix products.
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_chunk.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Pieces of SlotChunkArgs::scratch.
struct SlotScratch {
  SlotScratch(const SlotChunkArgs& a)
      : keys_t(a.scratch),
        weight_t(keys_t + a.key_dim * a.tokens),
        scores(weight_t + a.slots * a.tokens),
        old(scores + a.tokens * a.tokens),
        written(old + a.tokens * a.slots) {}

  float* keys_t;    // [d, C] k transposed
  float* weight_t;  // [n, C] the weight of V~ transposed
  float* scores;    // [C, C] tril(Q K^T), then the share of each token of the chunk in o
  float* old;       // [C, n] of what the slots held before the chunk: logits, then shares
  float* written;   // [C, n] the same of what the chunk wrote
};

// The factors of one half of the memory.
struct SlotFactors {
  const float *carry, *gain, *weight;  // [C, n]
};
HWY_INLINE SlotFactors KeyFactors(const SlotChunkArgs& a) { return {a.carry, a.gain, a.weight}; }
HWY_INLINE SlotFactors ValueFactors(const SlotChunkArgs& a) {
  return a.value_carry == nullptr ? KeyFactors(a) : SlotFactors{a.value_carry, a.value_gain, a.value_weight};
}

// Logits of token t from its two parts, their softmax, and that split again by the factors of V~: old = P*carry, written = P*gain.
HWY_INLINE void SoftmaxRow(const SlotChunkArgs& a, size_t t, float* old, float* written) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const float* carry = a.carry + t * a.slots;
  const float* gain = a.gain + t * a.slots;
  const float* bias = a.bias + t * a.slots;
  const VF scale = hn::Set(d, a.scale);
  for (size_t j = 0; j < a.slots; j += lanes) {
    const size_t left = a.slots - j;
    const VF grown = hn::Mul(hn::LoadN(d, gain + j, left), hn::LoadN(d, written + j, left));
    const VF sum = hn::MulAdd(hn::LoadN(d, carry + j, left), hn::LoadN(d, old + j, left), grown);
    hn::StoreN(hn::MulAdd(sum, scale, hn::LoadN(d, bias + j, left)), d, old + j, left);
  }
  float top = -HUGE_VALF;
  const float sum = ExpRow(a.slots, old, top);
  const VF inverse = hn::Set(d, sum == 0.0f ? 0.0f : 1.0f / sum);  // 0: every slot is masked, and o is 0
  carry = ValueFactors(a).carry + t * a.slots;
  gain = ValueFactors(a).gain + t * a.slots;
  for (size_t j = 0; j < a.slots; j += lanes) {
    const size_t left = a.slots - j;
    const VF p = hn::Mul(hn::LoadN(d, old + j, left), inverse);
    hn::StoreN(hn::Mul(p, hn::LoadN(d, carry + j, left)), d, old + j, left);
    hn::StoreN(hn::Mul(p, hn::LoadN(d, gain + j, left)), d, written + j, left);
  }
}

// o of query head g for every token.
HWY_INLINE void ReadChunk(const SlotChunkArgs& a, const SlotScratch& s, size_t g) {
  const size_t c = a.tokens, n = a.slots, dim = a.key_dim, dv = a.value_dim;
  const float* q = a.q + g * dim;
  float* o = a.o + g * dv;
  GemmToTriangle({c, c, dim, q, a.q_stride, 1, s.keys_t, c, false, s.scores, c});
  Gemm({c, n, dim, q, a.q_stride, 1, a.keys, n, false, s.old, n});
  GemmOfTriangle({c, n, c, s.scores, c, 1, a.weight, n, false, s.written, n});
  for (size_t t = 0; t < c; ++t) SoftmaxRow(a, t, s.old + t * n, s.written + t * n);
  Gemm({c, dv, n, s.old, n, 1, a.values, dv, false, o, a.o_token_stride});
  GemmToTriangle({c, c, n, s.written, n, 1, s.weight_t, c, false, s.scores, c});
  GemmOfTriangle({c, dv, c, s.scores, c, 1, a.v, a.v_stride, true, o, a.o_token_stride});
}

// What each token leaves in each slot at the end of the chunk.
HWY_INLINE void FinalWrites(const SlotChunkArgs& a, const SlotFactors& f, float* write) {
  const float* gain = f.gain + (a.tokens - 1) * a.slots;
  for (size_t t = 0; t < a.tokens; ++t) {
    Map2(a.slots, f.weight + t * a.slots, gain, write + t * a.slots, [](DF, VF v, VF w) HWY_ATTR { return hn::Mul(v, w); });
  }
}

// K~ = carry_C*K~ + K^T (weight*gain_C), V~ likewise.
HWY_INLINE void MoveState(const SlotChunkArgs& a, const SlotScratch& s) {
  const SlotFactors of_keys = KeyFactors(a), of_values = ValueFactors(a);
  const float* carry = of_keys.carry + (a.tokens - 1) * a.slots;
  const auto mul = [](DF, VF v, VF w) HWY_ATTR { return hn::Mul(v, w); };
  float* write = s.written;  // [C, n]
  FinalWrites(a, of_keys, write);
  for (size_t x = 0; x < a.key_dim; ++x) Map2(a.slots, a.keys + x * a.slots, carry, a.keys + x * a.slots, mul);
  Gemm({a.key_dim, a.slots, a.tokens, s.keys_t, a.tokens, 1, write, a.slots, true, a.keys, a.slots});
  if (a.value_carry != nullptr) FinalWrites(a, of_values, write);
  carry = of_values.carry + (a.tokens - 1) * a.slots;
  for (size_t j = 0; j < a.slots; ++j) Scale(a.value_dim, carry[j], a.values + j * a.value_dim);
  Gemm({a.slots, a.value_dim, a.tokens, write, 1, a.slots, a.v, a.v_stride, true, a.values, a.value_dim});
}

void SlotChunk(const SlotChunkArgs& a) {
  const SlotScratch s(a);
  Transpose(a.tokens, a.key_dim, a.k, a.k_stride, s.keys_t);
  Transpose(a.tokens, a.slots, ValueFactors(a).weight, a.slots, s.weight_t);
  for (size_t g = 0; g < a.queries; ++g) ReadChunk(a, s, g);
  MoveState(a, s);
}

void FillSlotChunk(Kernels& table) { table.slot_chunk = SlotChunk; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
uint64_t SlotChunkScratch(uint64_t tokens, uint64_t slots, uint64_t key_dim, uint64_t) {
  return tokens * (key_dim + tokens + 3 * slots);
}

HWY_EXPORT(FillSlotChunk);
void FillSlotChunk(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotChunk)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
