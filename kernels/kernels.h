// The table of kernels: every piece of arithmetic that the runtime does outside XNNPACK, as plain functions on plain pointers.
//
// A kernel knows no model, file, heap or thread. One table exists per instruction set (Select), and one made of the scalar
// reference (Reference), which is the oracle that every other table is tested against.
//
// Conventions. All floating data is f32 and row-major. `x_stride` is the distance in elements between rows of x (between tokens,
// where rows are tokens); where it is not given, rows are contiguous. No kernel reads or writes past the last element of a row: there
// is no padding contract, any size >= 1 works, and pointers need only the alignment of their type. Inputs and outputs do not
// overlap unless a kernel says that they may be the same. Sums run in f32; the order is fixed for a given table, so that a result never
// depends on the thread that computed it.
#ifndef TARN_KERNELS_KERNELS_H_
#define TARN_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/core/span.h"

namespace tarn {

// ---- Linear state (MATH F1): S <- decay*S + phi(k) x (write*v), o = scale * phi(q)^T S / den --------------------------------------

// Numbers are those of schema/tarn.fbs.
enum class FeatureMap : uint8_t {
  kGaussian = 0,  // sqrt(1/D) [sin Wx; cos Wx], M = 2D        (RFA, Theorem 1)
  kArccos = 1,    // sqrt(1/D) relu(Wx), M = D                 (RFA, arc-cosine kernel of order 1)
};
constexpr size_t kFeatureMapCount = 2;

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
  size_t projections;   // D
  const float* x;       // [rows, d], contiguous
  const float* weight;  // [d, D]: the effective projection, transposed so that a row of it meets one element of x
  float* phi;           // [rows, M], contiguous
};
using FeatureKernel = void (*)(const FeatureArgs&);

// One token of one key/value head, with the query heads that read it. Writes first, then reads:
//   S <- decay*S + (write*phi_k) x v;  z <- decay*z + write*phi_k;  o_g = scale * phi_q_g^T S / den(phi_q_g . z)
struct LinearStepArgs {
  size_t queries;      // G: query heads of this key/value head
  size_t features;     // M
  size_t value_dim;    // dv
  const float* phi_q;  // [G, M]
  const float* phi_k;  // [M]
  const float* v;      // [dv]
  float decay;         // in [0, 1]; 1 without a gate
  float write;         // 1 without a gate
  DenMode den_mode;
  float den_eps;
  float scale;
  float* state;  // S [M, dv]
  float* norm;   // z [M]; nullptr with DenMode::kNone
  float* o;      // [G, dv], contiguous
};

// The same for C tokens at once (MATH 0.2, "F1 scalar gate"): with c = cumsum(log_decay), A_ij = (phi_q_i . phi_k_j) exp(c_i - c_j) write_j
// for j <= i,  num = exp(c_i) (phi_q S)_i + A V,  den = exp(c_i) (phi_q_i . z) + A 1,  and then S, z move to the end of the chunk.
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
  float* o;              // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;  // LinearChunkScratch(...) elements
};
size_t LinearChunkScratch(size_t tokens, size_t features, size_t value_dim);

// ---- Slot memory (MATH F2): K~ <- a*K~ + b x k, V~ <- a*V~ + b x v, o = V~^T softmax(scale * K~ q + bias) ---------------------------

enum class SlotActivation : uint8_t { kExp = 0, kRelu = 1, kSigmoid = 2 };
enum class SlotNormalization : uint8_t {
  kRenorm = 0,  // running sums divided by the current sum of controls
  kFrozen = 1,  // every write keeps the weight it was written with
};

// ABC-MLP's control of one key/value head: what the activated logits of `tokens` tokens do to its n slots (MATH 1.8.1).
struct AbcControlArgs {
  size_t tokens;        // C; 1 in a step
  size_t slots;         // n
  const float* logits;  // [C, n], rows logit_stride apart
  size_t logit_stride;
  SlotActivation activation;
  SlotNormalization normalization;
  float clamp_min, clamp_max;  // applied to the logits first; -inf, inf: none
  bool mask_empty;             // a slot with no mass takes no part in the softmax
  bool first;                  // no token was seen since the reset: `mass` is to be ignored
  float* mass;                 // [n] state: log-sum-exp of the logits (exp) or sum of the controls; updated
};

// Beyond it a weight that matters (weight * gain near 1) could be below f32's normal range, which some CPUs flush to zero.
constexpr float kAbcLogLimit = 60.0f;

// Step: decay a [n], write b [n], and bias [n]: 0, or -inf where a masked slot is empty.
using AbcControlStep = void (*)(const AbcControlArgs&, float* decay, float* write, float* bias);
// Chunk: K~_t = carry_t*K~_0 + gain_t * sum_{i<=t} weight_i x k_i for every token t of the chunk; carry, gain, weight, bias are [C, n].
// Returns false, and leaves `mass` as it was, where a gain or a weight would exceed exp(kAbcLogLimit): take steps then.
using AbcControlChunk = bool (*)(const AbcControlArgs&, float* carry, float* gain, float* weight, float* bias);

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

// MATH 0.2 "F2" with factored controls: logits_t = scale * (carry_t*(Q K~_0^T)_t + gain_t * (tril(Q K^T) weight)_t) + bias_t, P = softmax,
// o = (P*carry) V~_0 + tril((P*gain) weight^T) V, and then K~, V~ move to the end of the chunk.
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
size_t SlotChunkScratch(size_t tokens, size_t slots, size_t key_dim, size_t value_dim);

// ---- Cache attention (MATH F3): softmax over explicit rows -----------------------------------------------------------------------

// `tokens` queries against `rows` cached rows. Query t sees the rows r < rows - tokens + t + 1 (causal, the chunk's own rows are the last
// of the cache). One pass over the rows in tiles with a running maximum.
struct CacheArgs {
  size_t tokens;   // C; 1 in a step
  size_t queries;  // G
  size_t rows;     // of the cache, those of this chunk included
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of token t, query g at q + t*q_stride + g*d
  size_t q_stride;
  const float* keys;    // [rows, d]
  const float* values;  // [rows, dv]
  float scale;
  float* o;  // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;  // CacheScratch(...) elements
};
size_t CacheScratch(size_t tokens, size_t key_dim);

// ---- The table ---------------------------------------------------------------------------------------------------------------------

struct Kernels {
  const char* name;  // "reference", or Highway's name of the target

  // y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance. x and y may be the same.
  void (*layer_norm)(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, const float* bias, float eps,
                     float* y, size_t y_stride);
  // y = x / sqrt(mean(x^2) + eps) * weight. x and y may be the same.
  void (*rms_norm)(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y,
                   size_t y_stride);
  // Elementwise, x and y may be the same: max(x, 0); x Phi(x) with the error function; its tanh form.
  void (*relu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*gelu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*gelu_tanh)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  // y = gate * sigmoid(gate) * up. y may be gate or up.
  void (*silu_mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                   size_t y_stride);
  // y = a + b. y may be a or b.
  void (*add)(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y,
              size_t y_stride);
  // y = scale * x for one row of an embedding table.
  void (*scale_f32)(size_t n, const float* x, float scale, float* y);
  void (*scale_f16)(size_t n, const uint16_t* x, float scale, float* y);
  void (*scale_i8)(size_t n, const int8_t* x, float scale, float* y);
  // sine[i] = sin(position * frequency[i]), cosine likewise. The angle is formed and reduced in f64, so that it is exact to f32
  // rounding for every position below 2^40.
  void (*sinusoid)(size_t n, double position, const double* frequency, float* sine, float* cosine);
  // Rotary positions, halves layout, for `heads` heads of d: (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos). `angles` is [rows, d]: the
  // d/2 cosines of the row's position, then its d/2 sines. d is even. x and y may be the same.
  void (*rope)(size_t rows, size_t heads, size_t d, const float* x, size_t x_stride, const float* angles, float* y,
               size_t y_stride);
  // y = scale * x / (|x| + eps), or with `inside` scale * x / sqrt(|x|^2 + eps). y is contiguous.
  void (*l2_normalize)(size_t rows, size_t d, const float* x, size_t x_stride, float scale, float eps, bool inside, float* y);
  // For gate logits a: decay = sigmoid(a), write = sigmoid(-a), log_decay = -softplus(-a). Each output may be nullptr.
  void (*forget_gate)(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay);

  FeatureKernel features[kFeatureMapCount];
  void (*linear_step)(const LinearStepArgs&);
  void (*linear_chunk)(const LinearChunkArgs&);
  AbcControlStep abc_control_step;
  AbcControlChunk abc_control_chunk;
  void (*slot_step)(const SlotStepArgs&);
  void (*slot_chunk)(const SlotChunkArgs&);
  void (*cache_attend)(const CacheArgs&);

  // Portable dense layers: y = x W^T + bias, W [out, in]; bias may be nullptr.
  void (*dense_f32)(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const float* weight, const float* bias,
                    float* y, size_t y_stride);
  // Dynamic int8 activations (per row, asymmetric: x ~ scale * (q - zero_point)) x int8 weights with a scale per output channel.
  // Accumulates in i32: in <= 66,051 cannot overflow (255 * 127 * in < 2^31).
  void (*quantize_qd8)(size_t n, const float* x, int8_t* q, float* scale, int32_t* zero_point);
  void (*dense_qd8_qc8w)(size_t in, size_t out, const int8_t* q, float scale, int32_t zero_point, const int8_t* weight,
                         const float* weight_scale, const float* bias, float* y);
};

// The scalar oracle: written to be read, never optimised.
const Kernels& Reference();

// Names of the tables that this CPU can run, best first, "reference" last.
Span<const char* const> KernelNames();

// The table of that name; nullptr: the best. Returns nullptr for a name that KernelNames() does not list. Lives for ever.
const Kernels* SelectKernels(const char* name);

}  // namespace tarn

#endif  // TARN_KERNELS_KERNELS_H_
