// A chunk of tokens of the delta rule (MATH 0.2, "F1 delta rule (WY)"), as matrix products and a triangular solve.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/delta_chunk.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/chunk_decay-inl.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Pieces of DeltaChunkArgs::scratch.
struct DeltaScratch {
  DeltaScratch(const DeltaChunkArgs& a)
      : keys_t(a.scratch),
        scores(keys_t + a.features * a.tokens),
        written(scores + a.tokens * a.tokens),
        decay(written + a.tokens * a.value_dim),
        carry(decay + a.tokens),
        left(carry + a.tokens) {}

  float* keys_t;   // [M, C] phi_k transposed
  float* scores;   // [C, C] -A, and then tril(Q K^T) of one query head after the other
  float* written;  // [C, dv] U
  float* decay;    // [C] exp(log_decay)
  float* carry;    // [C] exp(c_i): what is left of the state from before the chunk
  float* left;     // [C] exp(c_i - c_j) for one i
};

// The scores of token i with those before it, of which `count` are read: each by what the tokens between them leave.
HWY_INLINE void WeighScores(const DeltaChunkArgs& a, const DeltaScratch& s, size_t i, size_t count) {
  if (a.log_decay == nullptr) return;
  NextRow(i, s.decay[i], 1.0f, s.left);
  Weigh(count, s.left, s.scores + i * a.tokens);
}

// U from (I + A) U = diag(beta) (V - diag(carry) K S), in place of its right-hand side: U_i += sum_{j<i} (-A_ij) U_j, block by
// block and then row by row inside a block, so that most of it is a matrix product.
HWY_INLINE void SolveForWritten(const DeltaChunkArgs& a, const DeltaScratch& s) {
  const size_t dv = a.value_dim;
  GemmToTriangle({a.tokens, a.tokens, a.features, a.phi_k, a.features, 1, s.keys_t, a.tokens, false, s.scores, a.tokens});
  Gemm({a.tokens, dv, a.features, a.phi_k, a.features, 1, a.state, dv, false, s.written, dv});
  for (size_t i = 0; i < a.tokens; ++i) {
    const float beta = a.beta[i], carry = s.carry[i];
    WeighScores(a, s, i, i);
    Scale(i, -beta, s.scores + i * a.tokens);
    float* row = s.written + i * dv;
    Map2(dv, a.v + i * a.v_stride, row, row, [beta, carry](DF d, VF v, VF old) HWY_ATTR {
      return hn::Mul(hn::Set(d, beta), hn::NegMulAdd(hn::Set(d, carry), old, v));
    });
  }
  for (size_t first = 0; first < a.tokens; first += kTriangleRows) {
    const size_t rows = a.tokens - first < kTriangleRows ? a.tokens - first : kTriangleRows;
    const float* scores = s.scores + first * a.tokens;
    float* block = s.written + first * dv;
    if (first > 0) Gemm({rows, dv, first, scores, a.tokens, 1, s.written, dv, true, block, dv});
    for (size_t r = 1; r < rows; ++r)
      Gemm({1, dv, r, scores + r * a.tokens + first, a.tokens, 1, block, dv, true, block + r * dv, dv});
  }
}

// o of query head g for every token: scale * (diag(carry) Q S + tril(Q K^T) U), the scores weighed as above.
HWY_INLINE void ReadWritten(const DeltaChunkArgs& a, const DeltaScratch& s, size_t g) {
  const float* phi_q = a.phi_q + g * a.tokens * a.features;
  float* o = a.o + g * a.value_dim;
  GemmToTriangle({a.tokens, a.tokens, a.features, phi_q, a.features, 1, s.keys_t, a.tokens, false, s.scores, a.tokens});
  Gemm({a.tokens, a.value_dim, a.features, phi_q, a.features, 1, a.state, a.value_dim, false, o, a.o_token_stride});
  for (size_t i = 0; a.log_decay != nullptr && i < a.tokens; ++i) {
    WeighScores(a, s, i, i + 1);
    Scale(a.value_dim, s.carry[i], o + i * a.o_token_stride);
  }
  GemmOfTriangle({a.tokens, a.value_dim, a.tokens, s.scores, a.tokens, 1, s.written, a.value_dim, true, o, a.o_token_stride});
  if (a.scale == 1.0f) return;
  for (size_t i = 0; i < a.tokens; ++i) Scale(a.value_dim, a.scale, o + i * a.o_token_stride);
}

// S = exp(c_C) S + K^T (left o U); `left` is the last row.
HWY_INLINE void MoveState(const DeltaChunkArgs& a, const DeltaScratch& s) {
  if (a.log_decay != nullptr) {
    Scale(a.features * a.value_dim, s.carry[a.tokens - 1], a.state);
    for (size_t j = 0; j < a.tokens; ++j) Scale(a.value_dim, s.left[j], s.written + j * a.value_dim);
  }
  Gemm({a.features, a.value_dim, a.tokens, s.keys_t, a.tokens, 1, s.written, a.value_dim, true, a.state, a.value_dim});
}

void DeltaChunk(const DeltaChunkArgs& a) {
  const DeltaScratch s(a);
  MakeDecays(a.tokens, a.log_decay, s.decay, s.carry);
  Transpose(a.tokens, a.features, a.phi_k, a.features, s.keys_t);
  SolveForWritten(a, s);
  for (size_t g = 0; g < a.queries; ++g) ReadWritten(a, s, g);
  MoveState(a, s);
}

void FillDeltaChunk(Kernels& table) { table.delta_chunk = DeltaChunk; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
uint64_t DeltaChunkScratch(uint64_t tokens, uint64_t features, uint64_t value_dim) {
  return tokens * (features + tokens + value_dim + 3);
}

HWY_EXPORT(FillDeltaChunk);
void FillDeltaChunk(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillDeltaChunk)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
