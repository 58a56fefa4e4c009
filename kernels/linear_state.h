// Arguments of the kernels of linear states (MATH F1):
//   S <- decay*S + phi(k) x (write*v),  o = scale * phi(q)^T S / den
#ifndef TARN_KERNELS_LINEAR_STATE_H_
#define TARN_KERNELS_LINEAR_STATE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/stored.h"
#include "variants/linear.h"

namespace tarn {

// phi = feature map of each row of x.
struct FeatureArgs {
  size_t rows;
  size_t head_dim;      // d
  size_t projections;   // D; 0 where there is no W
  const float* x;       // [rows, d], contiguous
  const float* weight;  // [d, D]: W transposed, so that a row of it meets one element of x; nullptr where there is no W
  const float* bias;    // [D], kMlpRelu and kProduct only
  float ratio;          // kRelu only
  float eps;            // kRelu only
  uint32_t nu;          // kDpfp only
  bool negate_second;   // kDpfp only
  float* phi;           // [rows, M], contiguous
  float* log_weight;  // [rows], kPositive only: the maximum of Wx - |x|^2/2 over the features of the row, which phi is relative to
};
using FeatureKernel = void (*)(const FeatureArgs&);

// One token of one key/value head, with the query heads that read it. Writes first, then reads:
//   S <- decay*S + (write*phi_k) x v;  z <- decay*z + write*phi_k;  o_g = scale * phi_q_g^T S / den(phi_q_g . z)
// With `row_decay` the decay of feature row r of S and z is decay * row_decay[r] (GLA).
struct LinearStepArgs {
  size_t queries;          // G: query heads of this key/value head
  size_t features;         // M
  size_t value_dim;        // dv
  const float* phi_q;      // [G, M]
  const float* phi_k;      // [M]
  const float* v;          // [dv]
  float decay;             // in [0, 1]; 1 without a gate
  const float* row_decay;  // [M], or nullptr
  float write;             // 1 without a gate
  DenMode den_mode;
  float den_eps;
  float scale;
  StateRows state;  // S [M, dv]
  float* norm;      // z [M]; nullptr with DenMode::kNone
  float* o;         // [G, dv], contiguous
};

// Steps of one shape that follow one another on one state; outputs do not overlap. They have the bits of single steps.
using LinearStepsKernel = void (*)(size_t count, const LinearStepArgs* steps);

// The same for C tokens at once (MATH 0.2, "F1 scalar gate"): with c = cumsum(log_decay), A_ij = (phi_q_i . phi_k_j) exp(c_i - c_j)
// write_j for j <= i,  num = exp(c_i) (phi_q S)_i + A V,  den = exp(c_i) (phi_q_i . z) + A 1,  and then S, z move to the end of the
// chunk.
struct LinearChunkArgs {
  size_t tokens;  // C
  size_t queries;
  size_t features;
  size_t value_dim;
  const float* phi_q;  // [G, C, M]
  const float* phi_k;  // [C, M]
  const float* v;      // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* log_decay;  // [C], each <= 0; nullptr: no decay
  const float* write;      // [C]; nullptr: 1
  DenMode den_mode;
  float den_eps;
  float scale;
  float* state;
  float* norm;
  float* o;  // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;  // LinearChunkScratch(...) elements
};
uint64_t LinearChunkScratch(uint64_t tokens, uint64_t features, uint64_t value_dim);

// A static linear memory (MATH 0.2 "Non-causal", 1.2.2): C of its keys are added at once, nobody reads in between.
//   S <- carry*S + phi_k^T diag(write) V,  z <- carry*z + phi_k^T write
struct LinearWriteArgs {
  size_t tokens;  // C
  size_t features;
  size_t value_dim;
  const float* phi_k;  // [C, M]
  const float* v;      // [C, dv], rows v_stride apart
  size_t v_stride;
  float carry;         // in [0, 1]: of a running maximum; else 1
  const float* write;  // [C]; nullptr: 1
  float* state;        // S [M, dv]
  float* norm;         // z [M], or nullptr
  float* scratch;      // [C, dv]; not read with write == nullptr
};

// What R rows of G query heads read from it: o = scale * phi_q^T S / den(phi_q . z)
struct LinearReadArgs {
  size_t rows;     // R
  size_t queries;  // G
  size_t features;
  size_t value_dim;
  const float* phi_q;  // [R, G, M]
  StoredRows state;    // S [M, dv], contiguous
  const float* norm;   // z [M]; nullptr with DenMode::kNone
  DenMode den_mode;
  float den_eps;
  float scale;
  float* o;  // o of row r, query g at o + r*o_stride + g*dv
  size_t o_stride;
};

// Delta rule (MATH 1.6), one token: decay, retrieve what k has stored, write the difference, then read.
//   S <- decay*S,  v_old = S^T phi_k / d,  S <- S + phi_k x beta (v - v_old),  o_g = scale * phi_q_g^T S / den
// With `row_decay` the decay of feature row r is row_decay[r] (KDA). d = den = 1. With `norm` (attention-normalised): no decay, d =
// phi_k . z before this token (1 at the first), then z <- z + phi_k, and den = phi_q_g . z + den_eps.
struct DeltaStepArgs {
  size_t queries;
  size_t features;
  size_t value_dim;
  const float* phi_q;      // [G, M]
  const float* phi_k;      // [M]
  const float* v;          // [dv]
  float decay;             // in [0, 1]; 1 without a gate, or with row_decay
  const float* row_decay;  // [M], or nullptr
  float beta;
  float den_eps;
  float scale;
  bool first;      // no token was seen since the reset
  float* state;    // S [M, dv]
  float* norm;     // z [M], or nullptr
  float* o;        // [G, dv], contiguous
  float* scratch;  // [dv], with row_decay [dv + M]
};

// C tokens at once, without `norm` (MATH 0.2, "F1 delta rule (WY)"): A = tril(diag(beta) (L o K K^T), -1), T = (I + A)^-1 by
// forward substitution, U = T diag(beta) (V - diag(exp c) K S), O = scale * (diag(exp c) Q S + tril(L o Q K^T) U), and S <-
// exp(c_C) S + K^T diag(L_C) U, with c = cumsum(log_decay), L_ij = exp(c_i - c_j).
struct DeltaChunkArgs {
  size_t tokens;
  size_t queries;
  size_t features;
  size_t value_dim;
  const float* phi_q;  // [G, C, M]
  const float* phi_k;  // [C, M]
  const float* v;      // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* log_decay;  // [C], each <= 0; nullptr: no decay
  const float* beta;       // [C]
  float scale;
  float* state;
  float* o;  // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;  // DeltaChunkScratch(...) elements
};
uint64_t DeltaChunkScratch(uint64_t tokens, uint64_t features, uint64_t value_dim);

// Rule "replace" (RWKV-7; MATH 1.6), one token: what is stored under the removal key r is taken away, each channel by its strength,
// from a state that decays meanwhile, and the key writes:
//   S <- diag(decay) S - (strength o r) x (S^T r) + phi_k x v,  o_g = scale * phi_q_g^T S
struct ReplaceStepArgs {
  size_t queries;
  size_t features;
  size_t value_dim;
  const float* phi_q;      // [G, M]
  const float* phi_k;      // [M]
  const float* v;          // [dv]
  float decay;             // in [0, 1]; 1 without a gate, or with row_decay
  const float* row_decay;  // [M], or nullptr
  const float* removal;    // r [M]
  const float* taken;      // strength o r [M]
  float scale;
  float* state;  // S [M, dv]
  float* o;      // [G, dv], contiguous
};

}  // namespace tarn

#endif  // TARN_KERNELS_LINEAR_STATE_H_
