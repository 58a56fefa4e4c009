// A chunk of tokens of the linear state (MATH 0.2, "F1 scalar gate"), as matrix products.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/linear_chunk.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/chunk_decay-inl.h"
#include "kernels/attention/denominator.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Pieces of LinearChunkArgs::scratch.
struct LinearScratch {
  LinearScratch(const LinearChunkArgs& a)
      : keys_t(a.scratch),
        scores(keys_t + a.features * a.tokens),
        written(scores + a.tokens * a.tokens),
        decay(written + a.tokens * a.value_dim),
        carry(decay + a.tokens),
        left(carry + a.tokens) {}

  float* keys_t;   // [M, C] phi_k transposed
  float* scores;   // [C, C] A
  float* written;  // [C, dv] what each token leaves at the end of the chunk
  float* decay;    // [C] exp(log_decay)
  float* carry;    // [C] exp(c_i): what is left of the state from before the chunk
  float* left;     // [C] exp(c_i - c_j) write_j for one i
};

HWY_INLINE float WriteOf(const LinearChunkArgs& a, size_t token) { return a.write == nullptr ? 1.0f : a.write[token]; }

// o of query head g for every token.
HWY_INLINE void ReadChunk(const LinearChunkArgs& a, const LinearScratch& s, size_t g) {
  const float* phi_q = a.phi_q + g * a.tokens * a.features;
  float* o = a.o + g * a.value_dim;
  GemmToTriangle({a.tokens, a.tokens, a.features, phi_q, a.features, 1, s.keys_t, a.tokens, false, s.scores, a.tokens});
  Gemm({a.tokens, a.value_dim, a.features, phi_q, a.features, 1, a.state, a.value_dim, false, o, a.o_token_stride});
  const bool gated = a.log_decay != nullptr || a.write != nullptr;
  for (size_t i = 0; i < a.tokens; ++i) {
    if (gated) {
      NextRow(i, a.log_decay == nullptr ? 1.0f : s.decay[i], WriteOf(a, i), s.left);
      Weigh(i + 1, s.left, s.scores + i * a.tokens);
    }
    if (a.log_decay != nullptr) Scale(a.value_dim, s.carry[i], o + i * a.o_token_stride);
  }
  GemmOfTriangle({a.tokens, a.value_dim, a.tokens, s.scores, a.tokens, 1, a.v, a.v_stride, true, o, a.o_token_stride});
  for (size_t i = 0; i < a.tokens; ++i) {
    float factor = a.scale;
    if (a.den_mode != DenMode::kNone) {
      const float old = Dot(a.features, phi_q + i * a.features, a.norm);
      const float sum = s.carry[i] * old + Sum(i + 1, s.scores + i * a.tokens);
      factor /= GuardedDenominator(a.den_mode, sum, a.den_eps);
    }
    if (factor != 1.0f) Scale(a.value_dim, factor, o + i * a.o_token_stride);
  }
}

// S = exp(c_C) S + phi_k^T (left o V), z likewise; `left` is the last row.
HWY_INLINE void MoveState(const LinearChunkArgs& a, const LinearScratch& s) {
  for (size_t j = 0; j < a.tokens; ++j) {
    const float left = s.left[j];
    Map(a.value_dim, a.v + j * a.v_stride, s.written + j * a.value_dim,
        [left](DF d, VF v) HWY_ATTR { return hn::Mul(hn::Set(d, left), v); });
  }
  const float carry = s.carry[a.tokens - 1];
  if (a.log_decay != nullptr) Scale(a.features * a.value_dim, carry, a.state);
  Gemm({a.features, a.value_dim, a.tokens, s.keys_t, a.tokens, 1, s.written, a.value_dim, true, a.state, a.value_dim});
  if (a.den_mode == DenMode::kNone) return;
  if (a.log_decay != nullptr) Scale(a.features, carry, a.norm);
  Gemm({1, a.features, a.tokens, s.left, a.tokens, 1, a.phi_k, a.features, true, a.norm, a.features});
}

void LinearChunk(const LinearChunkArgs& a) {
  const LinearScratch s(a);
  MakeDecays(a.tokens, a.log_decay, s.decay, s.carry);
  for (size_t i = 0; i < a.tokens; ++i) s.left[i] = WriteOf(a, i);  // right without decay, rebuilt row by row with
  Transpose(a.tokens, a.features, a.phi_k, a.features, s.keys_t);
  for (size_t g = 0; g < a.queries; ++g) ReadChunk(a, s, g);
  MoveState(a, s);
}

void FillLinearChunk(Kernels& table) { table.linear_chunk = LinearChunk; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
uint64_t LinearChunkScratch(uint64_t tokens, uint64_t features, uint64_t value_dim) {
  return tokens * (features + tokens + value_dim + 3);
}

HWY_EXPORT(FillLinearChunk);
void FillLinearChunk(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillLinearChunk)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
