// The table of kernels: every piece of arithmetic that the runtime does outside XNNPACK, as plain functions on plain pointers.
//
// A kernel knows no model, file, heap or thread. One table exists per instruction set (Select), and one made of the scalar
// reference (Reference), which is the oracle that every other table is tested against.
//
// Conventions. All floating data is f32 and row-major. `x_stride` is the distance in elements between rows of x (between tokens,
// where rows are tokens); where it is not given, rows are contiguous. No kernel reads or writes past the last element of a row:
// there is no padding contract, any size >= 1 works, and pointers need only the alignment of their type. Inputs and outputs do not
// overlap unless a kernel says that they may be the same. Sums run in f32; the order is fixed for a given table, so that a result
// never depends on the thread that computed it.
#ifndef TARN_KERNELS_KERNELS_H_
#define TARN_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/core/span.h"

namespace tarn {

// ---- Linear state (MATH F1): S <- decay*S + phi(k) x (write*v), o = scale * phi(q)^T S / den
// --------------------------------------

// phi of a row x of d elements. Numbers are those of schema/tarn.fbs.
enum class FeatureMap : uint8_t {
  kGaussian = 0,    // sqrt(1/D) [sin Wx; cos Wx], M = 2D                       (RFA, Theorem 1)
  kArccos = 1,      // sqrt(1/D) relu(Wx), M = D                                (RFA, arc-cosine kernel of order 1)
  kEluPlusOne = 2,  // x > 0 ? x + 1 : exp(x), M = d                            (linear transformer; MATH 1.3)
  kPositive = 3,    // sqrt(1/D) exp(Wx - |x|^2/2 - log_weight), M = D          (Performer, FAVOR+; MATH 1.4)
  kRelu = 4,        // relu(ratio * Wx) + eps, M = D; without W: of x, M = d    (Performer-ReLU; MATH 1.4)
  kDpfp = 5,        // r_i * r_{(i+j) mod 2d} at i + 2d(j-1), j = 1..nu, M = 2d nu, r = [relu(x); relu(-x)], or with `negate_second`
                    // r = [relu(x); -relu(x)], as fla has it                   (DPFP; MATH 1.5)
  kMlpRelu = 6,     // relu(Wx + bias), M = D                                   (T2R; MATH 1.7)
  kIdentity = 7,    // x, M = d
};
constexpr size_t kFeatureMapCount = 8;

// Denominator from s = phi(q) . z
enum class DenMode : uint8_t {
  kNone = 0,         // no division, and no z
  kAdd = 1,          // s + eps
  kClampMin = 2,     // max(s, eps)
  kAbsClampMin = 3,  // max(|s|, eps)
};

// phi = feature map of each row of x.
struct FeatureArgs {
  size_t rows;
  size_t head_dim;      // d
  size_t projections;   // D; 0 where there is no W
  const float* x;       // [rows, d], contiguous
  const float* weight;  // [d, D]: W transposed, so that a row of it meets one element of x; nullptr where there is no W
  const float* bias;    // [D], kMlpRelu only
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
  float* state;  // S [M, dv]
  float* norm;   // z [M]; nullptr with DenMode::kNone
  float* o;      // [G, dv], contiguous
};

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
  const float* state;  // S [M, dv]
  const float* norm;   // z [M]; nullptr with DenMode::kNone
  DenMode den_mode;
  float den_eps;
  float scale;
  float* o;  // o of row r, query g at o + r*o_stride + g*dv
  size_t o_stride;
};

// Delta rule (MATH 1.6), one token: retrieve what k has stored, write the difference, then read.
//   v_old = S^T phi_k / d,  S <- S + phi_k x beta (v - v_old),  o_g = scale * phi_q_g^T S / den
// d = den = 1. With `norm` (attention-normalised): d = phi_k . z before this token (1 at the first), then z <- z + phi_k, and
// den = phi_q_g . z + den_eps.
struct DeltaStepArgs {
  size_t queries;
  size_t features;
  size_t value_dim;
  const float* phi_q;  // [G, M]
  const float* phi_k;  // [M]
  const float* v;      // [dv]
  float beta;
  float den_eps;
  float scale;
  bool first;      // no token was seen since the reset
  float* state;    // S [M, dv]
  float* norm;     // z [M], or nullptr
  float* o;        // [G, dv], contiguous
  float* scratch;  // [dv]
};

// C tokens at once, without `norm` (MATH 0.2, "F1 delta rule (WY)"): A = tril(diag(beta) K K^T, -1), T = (I + A)^-1 by forward
// substitution, U = T diag(beta) (V - K S), O = scale * (Q S + tril(Q K^T) U), S <- S + K^T U.
struct DeltaChunkArgs {
  size_t tokens;
  size_t queries;
  size_t features;
  size_t value_dim;
  const float* phi_q;  // [G, C, M]
  const float* phi_k;  // [C, M]
  const float* v;      // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* beta;  // [C]
  float scale;
  float* state;
  float* o;  // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;  // DeltaChunkScratch(...) elements
};
uint64_t DeltaChunkScratch(uint64_t tokens, uint64_t features, uint64_t value_dim);

// ---- Slot memory (MATH F2): K~ <- a*K~ + b x k, V~ <- a*V~ + b x v, o = V~^T softmax(scale * K~ q + bias)
// ---------------------------

enum class SlotActivation : uint8_t { kExp = 0, kRelu = 1, kSigmoid = 2 };
enum class SlotNormalization : uint8_t {
  kRenorm = 0,  // running sums divided by the current sum of controls
  kFrozen = 1,  // every write keeps the weight it was written with
};

// A control strategy says, token by token, what the n slots of one key/value head keep (decay) and take (write). Numbers are those
// of schema/tarn.fbs. t counts tokens from 0.
enum class SlotControl : uint8_t {
  kAbcMlp = 0,           // activated logits, renormalised or frozen             (ABC, MATH 1.8.1)
  kLinformer = 1,        // decay 1, write schedule[t]                           (MATH 1.8.2)
  kAssigned = 2,         // decay 1, write 1 into slot index[t]                  (ABC-RD, MATH 1.8.3)
  kGlobal = 3,           // decay 1, write 1 into slot i where t == positions[i] (L2G, MATH 1.8.6)
  kCompressiveMean = 4,  // running mean in slot floor(n t / max_len)            (MATH 1.8.7 a)
  kClusteringOnline =
      5,     // t < n opens slot t; then running mean in the slot whose K~ is nearest to k, ties to the lower index (MATH 1.8.8)
  kGsa = 6,  // f = logsigmoid(logits) / gate_normalizer: decay e^f, write 1 - e^f  (GSA, MATH 0.1, 2.2)
  kLunaCausal = 7,  // p = log2(1 + 2^logits): decay t / (t+1), write p / (t+1)            (Luna, MATH 1.9.5)
};
constexpr size_t kSlotControlCount = 8;

struct SlotControlArgs {
  size_t tokens;         // C; 1 in a step
  size_t slots;          // n
  uint64_t tokens_seen;  // before the first of them, since the reset
  const float* logits;   // [C, n], rows logit_stride apart: kAbcMlp, kGsa, kLunaCausal
  size_t logit_stride;
  SlotActivation activation;        // kAbcMlp
  SlotNormalization normalization;  // kAbcMlp
  float clamp_min, clamp_max;       // kAbcMlp: applied to the logits first; -inf, inf: none
  float gate_normalizer;            // kGsa
  const float* schedule;            // kLinformer: [max_len, n]
  uint64_t max_len;                 // kCompressiveMean
  const int32_t* index;             // kAssigned: [C], index_stride apart; each in [0, n)
  size_t index_stride;
  const uint32_t* positions;  // kGlobal: [n], ascending
  const float* k;             // kClusteringOnline: [d], the key of the token
  const float* keys;          // kClusteringOnline: K~ [d, n]
  size_t key_dim;
  bool mask_empty;  // a slot that was never written takes no part in the softmax
  // [n] state, updated. kAbcMlp: log-sum-exp of the logits (exp) or sum of the controls; kCompressiveMean, kClusteringOnline:
  // members of the slot; kAssigned: members, only with mask_empty (else nullptr); nullptr elsewhere. With tokens_seen 0 it is all
  // zeros and a log-sum-exp in it is to be ignored.
  float* mass;
};

// Step: decay a [n], write b [n], and bias [n]: 0, or -inf where a masked slot is empty (this token's own write counts).
using SlotControlStep = void (*)(const SlotControlArgs&, float* decay, float* write, float* bias);
// Chunk: K~_t = carry_t*K~_0 + gain_t * sum_{i<=t} weight_i x k_i for every token t of the chunk; carry, gain, weight, bias are [C,
// n]. Returns false, and changes nothing, where there is no such form (kClusteringOnline) or where the factors would leave f32's
// range (gain or weight above exp(80)): take steps then.
using SlotControlChunk = bool (*)(const SlotControlArgs&, float* carry, float* gain, float* weight, float* bias);

struct SlotStepArgs {
  size_t queries;    // G
  size_t slots;      // n
  size_t key_dim;    // d
  size_t value_dim;  // dv
  const float* q;    // [G, d], contiguous
  const float* k;    // [d]
  const float* v;    // [dv]
  const float* decay;
  const float* write;
  const float* bias;
  float scale;
  float* keys;     // K~ transposed: [d, n], so that the logits of all slots grow lane by lane
  float* values;   // V~ [n, dv]
  float* o;        // [G, dv], contiguous; 0 where every slot is masked
  float* scratch;  // [G, n]
};

// MATH 0.2 "F2" with factored controls: logits_t = scale * (carry_t*(Q K~_0^T)_t + gain_t * (tril(Q K^T) weight)_t) + bias_t, P =
// softmax, o = (P*carry) V~_0 + tril((P*gain) weight^T) V, and then K~, V~ move to the end of the chunk.
struct SlotChunkArgs {
  size_t tokens;
  size_t queries;
  size_t slots;
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of token t, query g at q + t*q_stride + g*d
  size_t q_stride;
  const float* k;  // [C, d], rows k_stride apart
  size_t k_stride;
  const float* v;  // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* carry;
  const float* gain;
  const float* weight;
  const float* bias;
  float scale;
  float* keys;
  float* values;
  float* o;
  size_t o_token_stride;
  float* scratch;  // SlotChunkScratch(...) elements
};
uint64_t SlotChunkScratch(uint64_t tokens, uint64_t slots, uint64_t key_dim, uint64_t value_dim);

// Static slots (MATH 0.2 "Non-causal", 1.8): C tokens are added at once, nobody reads in between.
//   K~ <- carry*K~ + weight^T K,  V~ <- carry*V~ + weight^T V
struct SlotWriteArgs {
  size_t tokens;
  size_t slots;
  size_t key_dim;
  size_t value_dim;
  const float* k;  // [C, d], rows k_stride apart
  size_t k_stride;
  const float* v;  // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* carry;   // [n]; nullptr: 1
  const float* weight;  // [C, n]
  float* keys;          // K~ [d, n]
  float* values;        // V~ [n, dv]
};

// What R rows of G query heads read from them: o = V~^T softmax(scale * K~ q + bias)
struct SlotReadArgs {
  size_t rows;     // R
  size_t queries;  // G
  size_t slots;
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of row r, query g at q + r*q_stride + g*d
  size_t q_stride;
  const float* keys;    // K~ [d, n]
  const float* values;  // V~ [n, dv]
  const float* bias;    // [n]: finite, or -inf where a slot takes no part; nullptr: 0
  float scale;
  float* o;  // o of row r, query g at o + r*o_stride + g*dv; 0 where every slot is masked
  size_t o_stride;
  float* scratch;  // [R, G, n]
};

// Which slot's mean key is nearest (MATH 1.8.8): index_t = argmin_j |k_t - K~_j|^2, the first of equals.
struct NearestSlotArgs {
  size_t tokens;
  size_t slots;
  size_t key_dim;
  const float* k;  // [C, d], rows k_stride apart
  size_t k_stride;
  const float* keys;  // K~ [d, n]
  int32_t* index;     // [C]
  float* scratch;     // [n]
};

// ---- Cache attention (MATH F3): softmax over explicit rows
// -----------------------------------------------------------------------

enum class RowType : uint8_t { kF32 = 0, kF16 = 1, kI8 = 2 };

// Rows of keys and values that stand in memory one after the other. Row r is visible to token t of the chunk (from 0) iff
//   from + r*step <= t < until + r*step.
// So a block can be a piece of a ring (each row leaves the window a token after the one before it), the chunk's own rows (each
// comes in with its own token), or rows that everybody sees.
struct CacheBlock {
  size_t rows;
  RowType type;
  const void* keys;  // [rows, d], key_stride elements apart
  size_t key_stride;
  const void* values;  // [rows, dv], value_stride elements apart
  size_t value_stride;
  const float* key_scales;    // [rows], kI8 only: x = scale * q
  const float* value_scales;  // [rows], kI8 only
  int64_t from;
  int64_t until;
  int64_t step;
};
constexpr int64_t kAlways = INT64_MAX / 4;  // as `until`; its negative as `from`

// o_t = softmax over the visible rows of all blocks of (scale * q_t . k) times their values; 0 where no row is visible. One pass
// over the rows in tiles, with a running maximum.
struct CacheArgs {
  size_t tokens;   // C; 1 in a step
  size_t queries;  // G
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of token t, query g at q + t*q_stride + g*d
  size_t q_stride;
  const CacheBlock* blocks;
  size_t block_count;
  float scale;
  float* o;  // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;  // CacheScratch(...) elements
};
uint64_t CacheScratch(uint64_t tokens, uint64_t queries, uint64_t key_dim, uint64_t value_dim);

// ---- Scores of all keys (MATH 1.9.1, 1.9.2)
// --------------------------------------------------------------------------------------------------

// s_rj = q_r . k_j, a tile of keys at a time.
struct ScoreArgs {
  size_t rows;  // R
  size_t keys;  // T, >= 1
  size_t key_dim;
  const float* q;  // [R, d], rows q_stride apart
  size_t q_stride;
  const float* k;  // [T, d], rows k_stride apart
  size_t k_stride;
  float* scratch;  // ScoreScratch(...) elements
};
uint64_t ScoreScratch(uint64_t rows, uint64_t key_dim);

// ---- Dense layers on quantized rows
// ------------------------------------------------------------------------------------------------

// A row of x, quantized as it comes: x ~ scale * (q - zero_point), q and zero_point in [0, 255].
struct Qdu8 {
  float scale;
  int32_t zero_point;
};

// ---- The table
// ---------------------------------------------------------------------------------------------------------------------

struct Kernels {
  const char* name;  // "reference", or Highway's name of the target

  // y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance. x and y may be the same.
  void (*layer_norm)(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, const float* bias, float eps,
                     float* y, size_t y_stride);
  // y = x / sqrt(mean(x^2) + eps) * weight. x and y may be the same.
  void (*rms_norm)(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y,
                   size_t y_stride);
  // Elementwise, x and y may be the same: max(x, 0); x Phi(x) with the error function; its tanh form; tanh x.
  void (*relu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*gelu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*gelu_tanh)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*tanh)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  // y = gate * sigmoid(gate) * up. y may be gate or up.
  void (*silu_mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                   size_t y_stride);
  // y = a + b. y may be a or b.
  void (*add)(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y, size_t y_stride);
  // y = scale * x for one row of an embedding table.
  void (*scale_f32)(size_t n, const float* x, float scale, float* y);
  void (*scale_f16)(size_t n, const uint16_t* x, float scale, float* y);
  void (*scale_i8)(size_t n, const int8_t* x, float scale, float* y);
  // int4 with a bf16 scale per kI4Block elements, as in dense_qdu8_qb4w; n is a multiple of kI4Block.
  void (*scale_i4)(size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y);
  // sine[i] = sin(position * frequency[i]), cosine likewise. The angle is formed and reduced in f64, so that it is exact to f32
  // rounding for every position below 2^40.
  void (*sinusoid)(size_t n, double position, const double* frequency, float* sine, float* cosine);
  // Rotary positions, halves layout, for `heads` heads of d: (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos). `angles` is [rows, d]:
  // the d/2 cosines of the row's position, then its d/2 sines. d is even. x and y may be the same.
  void (*rope)(size_t rows, size_t heads, size_t d, const float* x, size_t x_stride, const float* angles, float* y,
               size_t y_stride);
  // y = scale * x / (|x| + eps), or with `inside` scale * x / sqrt(|x|^2 + eps). y is contiguous.
  void (*l2_normalize)(size_t rows, size_t d, const float* x, size_t x_stride, float scale, float eps, bool inside, float* y);
  // For gate logits a: decay = sigmoid(a), write = sigmoid(-a), log_decay = -softplus(-a). Each output may be nullptr.
  void (*forget_gate)(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay);
  // decay = exp(max(logsigmoid(a) / normalizer, clamp_min)); clamp_min may be -inf.
  void (*vector_gate)(size_t n, const float* a, float normalizer, float clamp_min, float* decay);
  // y = scale * sigmoid(a): write strengths of the delta rule.
  void (*scaled_sigmoid)(size_t n, const float* a, size_t a_stride, float scale, float* y);
  // phi = phi / (sum(phi) + eps) for each row of m features; a row of zeros stays one.
  void (*sum_normalize)(size_t rows, size_t m, float eps, float* phi);
  // log_weight = |sigma * x|^2 / 2 for each row; sigma [d] or nullptr for 1. (RFA Eq. 12, MATH 1.2.3)
  void (*half_squared_norm)(size_t rows, size_t d, const float* x, const float* sigma, float* log_weight);
  // The running maximum m of the log weights of keys (MATH 1.2.3, 1.4): log_decay_t = m_{t-1} - m_t, write_t = exp(log_weight_t -
  // m_t). `first`: no token was seen since the reset; m is then ignored and log_decay of the first token is 0 (the state is all
  // zeros).
  void (*running_max)(size_t tokens, bool first, const float* log_weight, float* m, float* log_decay, float* write);
  // The same for keys that are written at once: m' the maximum of m and all of them, carry = exp(m - m'), write_t =
  // exp(log_weight_t - m').
  void (*block_max)(size_t tokens, bool first, const float* log_weight, float* m, float* carry, float* write);
  // FAVOR+ with its epsilon (MATH 1.4), from features that are relative to a row's own maximum: phi = exp(-drop) phi + offset for
  // each row of m features; drop [rows] >= 0.
  void (*damp_features)(size_t rows, size_t m, const float* drop, float offset, float* phi);
  // Storage of states and rings: f16 rounds to nearest even (larger values saturate at +-65504); int8 is symmetric per row, scale =
  // max|x| / 127.
  void (*f32_to_f16)(size_t n, const float* x, uint16_t* y);
  void (*quantize_i8)(size_t n, const float* x, int8_t* q, float* scale);

  FeatureKernel features[kFeatureMapCount];
  void (*linear_step)(const LinearStepArgs&);
  void (*linear_chunk)(const LinearChunkArgs&);
  void (*linear_write)(const LinearWriteArgs&);
  void (*linear_read)(const LinearReadArgs&);
  void (*delta_step)(const DeltaStepArgs&);
  void (*delta_chunk)(const DeltaChunkArgs&);
  SlotControlStep slot_control_step[kSlotControlCount];
  SlotControlChunk slot_control_chunk[kSlotControlCount];
  void (*slot_step)(const SlotStepArgs&);
  void (*slot_chunk)(const SlotChunkArgs&);
  // Renormalised ABC-MLP for slot_write: carry [n] and weight [C, n], none above 1 whatever the logits are, so that K~ is the mean
  // of all keys so far, weighted by their controls. `top` [n] is state beside `mass`: with exp the largest logit, and mass the sum
  // of the controls relative to exp(top); else mass is their sum and top is not touched. With tokens_seen 0 both are all zeros.
  void (*abc_block)(const SlotControlArgs&, float* top, float* carry, float* weight);
  void (*nearest_slot)(const NearestSlotArgs&);
  void (*slot_write)(const SlotWriteArgs&);
  void (*slot_read)(const SlotReadArgs&);
  void (*cache_attend)(const CacheArgs&);
  // s [R, T], contiguous.
  void (*score_rows)(const ScoreArgs&, float* s);
  // measure_r = max_j s_rj - mean_j s_rj: how far from uniform the attention of a query is (ProbSparse, MATH 1.9.2).
  void (*score_peak)(const ScoreArgs&, float* measure);
  // p_r = softmax(scale * p_r) for each row of n, in place.
  void (*softmax_rows)(size_t rows, size_t n, float scale, float* p);
  // O = P V: o_r = sum_j p_rj v_j. p [rows, keys], contiguous; rows of v and o their strides apart.
  void (*weigh_rows)(size_t rows, size_t keys, size_t value_dim, const float* p, const float* v, size_t v_stride, float* o,
                     size_t o_stride);
  // nearest[i] = the j with the fewest bits in which codes[i] and centers[j] differ, the lowest of several; centers >= 1.
  void (*nearest_code)(size_t n, const uint64_t* codes, size_t center_count, const uint64_t* centers, uint32_t* nearest);

  // Portable dense layers: y = x W^T + bias, W [out, in], read where it is; bias may be nullptr. What a row becomes does not depend
  // on the other rows, nor on how the outputs are split over calls.
  void (*dense_f32)(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const float* weight, const float* bias,
                    float* y, size_t y_stride);
  void (*dense_f16)(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const uint16_t* weight, const float* bias,
                    float* y, size_t y_stride);
  // One row of x for the two kernels below: the numbers of XNNPACK's qd8, moved up by 128 to u8. With `split` (even n) the elements
  // of even index come first and those of odd index after them, as the nibbles of int4 weights want to meet them.
  void (*quantize_qdu8)(size_t n, const float* x, bool split, uint8_t* q, Qdu8* params);
  // int8 weights with a scale per output. q is [rows, in], contiguous; params [rows]. Exact in i32 while every sum of
  // (q - zero_point) w fits it, as for in <= 66,051 and |w| <= 127 (255 * 127 * in < 2^31).
  void (*dense_qdu8_qc8w)(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                          const float* weight_scale, const float* bias, float* y, size_t y_stride);
  // int4 weights (element i in the low nibble of byte i/2 where i is even, else in the high one; value = nibble - 8) with a bf16
  // scale per kI4Block inputs of an output: [out, in / kI4Block]. in is a multiple of kI4Block, the rows of q are split.
  void (*dense_qdu8_qb4w)(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const uint8_t* weight,
                          const uint16_t* block_scales, const float* bias, float* y, size_t y_stride);
};

// The scalar oracle: written to be read, never optimised.
const Kernels& Reference();

// Names of the tables that this CPU can run, best first, "reference" last.
Span<const char* const> KernelNames();

// The table of that name; nullptr: the best. Returns nullptr for a name that KernelNames() does not list. Lives for ever.
const Kernels* SelectKernels(const char* name);

}  // namespace tarn

#endif  // TARN_KERNELS_KERNELS_H_
