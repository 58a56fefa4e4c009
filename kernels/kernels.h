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

#include "core/span.h"
#include "kernels/cache_attention.h"
#include "kernels/causal_conv.h"
#include "kernels/linear_state.h"
#include "kernels/mixing.h"
#include "kernels/quantization.h"
#include "kernels/recurrence.h"
#include "kernels/slot_memory.h"

namespace tarn {

// What the kernels of int3 and int2 weights (core/planes.h), with a bf16 scale per kScaleBlock inputs of an output, take:
// y = x W^T + bias.
struct PlaneArgs {
  unsigned bits;                 // of a weight: 3 or 2
  size_t rows, in, out;          // in is a multiple of kScaleBlock; of a panel at most its outputs
  const uint8_t* q;              // [rows, in], each row in 8 parts, or for a panel in 1
  const int32_t* q_sums;         // [rows, in / kScaleBlock], -PlaneOffset(bits) times the sum of the block's q
  const Qdu8* params;            // [rows]
  const uint8_t* weight;         // rows of W, or a panel (dense/panels.h)
  const uint16_t* block_scales;  // [out, in / kScaleBlock], of int3 of either sign; not of a panel, which has its own
  const float* bias;             // [out] or nullptr
  float* y;                      // [rows, out]
  size_t y_stride;
};

struct Kernels {
  const char* name;  // "reference", or Highway's name of the target

  // y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance. x and y may be the same.
  void (*layer_norm)(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, const float* bias, float eps,
                     float* y, size_t y_stride);
  // y = x / sqrt(mean(x^2) + eps) * weight. x and y may be the same.
  void (*rms_norm)(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y,
                   size_t y_stride);
  // Elementwise, x and y may be the same: max(x, 0); x Phi(x) with the error function; its tanh form; tanh x; x sigmoid(x); the
  // square of max(x, 0); cap tanh(x / cap).
  void (*relu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*gelu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*gelu_tanh)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*tanh)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*silu)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*relu_squared)(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
  void (*soft_cap)(size_t rows, size_t n, const float* x, size_t x_stride, float cap, float* y, size_t y_stride);
  // y = gate * sigmoid(gate) * up, gelu(gate) * up in both forms, sigmoid(gate) * up, and gate * up. y may be gate or up.
  void (*silu_mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                   size_t y_stride);
  void (*gelu_mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                   size_t y_stride);
  void (*gelu_tanh_mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                        size_t y_stride);
  void (*sigmoid_mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                      size_t y_stride);
  void (*mul)(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
              size_t y_stride);
  // y = a + b. y may be a or b.
  void (*add)(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y, size_t y_stride);
  void (*causal_conv)(const CausalConvArgs&);
  void (*diagonal_recurrence)(const RecurrenceArgs&);
  // y = scale * x for one row of an embedding table.
  void (*scale_f32)(size_t n, const float* x, float scale, float* y);
  void (*scale_f16)(size_t n, const uint16_t* x, float scale, float* y);
  void (*scale_i8)(size_t n, const int8_t* x, float scale, float* y);
  // int4 with a bf16 scale per kScaleBlock elements, as in dense_qdu8_qb4w; n is a multiple of kScaleBlock.
  void (*scale_i4)(size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y);
  // Likewise a row of int3 or int2 (core/planes.h), by its bits.
  void (*scale_planes)(unsigned bits, size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y);
  // sine[i] = sin(position * frequency[i]), cosine likewise. The angle is formed and reduced in f64, so that it is exact to f32
  // rounding for angles below 2^28, and off by up to 2^-53 of a larger angle.
  void (*sinusoid)(size_t n, double position, const double* frequency, float* sine, float* cosine);
  // Rotary positions, halves layout, for `heads` heads of d: (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos). `angles` is [rows, d]:
  // the d/2 cosines of the row's position, then its d/2 sines. d is even. x and y may be the same.
  void (*rope)(size_t rows, size_t heads, size_t d, const float* x, size_t x_stride, const float* angles, float* y,
               size_t y_stride);
  // y = scale * x / (|x| + eps), or with `inside` scale * x / sqrt(|x|^2 + eps). y is contiguous, and may be x.
  void (*l2_normalize)(size_t rows, size_t d, const float* x, size_t x_stride, float scale, float eps, bool inside, float* y);
  // For gate logits a: decay = sigmoid(a), write = sigmoid(-a), log_decay = -softplus(-a). Each output may be nullptr.
  void (*forget_gate)(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay);
  // decay = exp(max(logsigmoid(a) / normalizer, clamp_min)); clamp_min may be -inf.
  void (*vector_gate)(size_t n, const float* a, float normalizer, float clamp_min, float* decay);
  // log_decay = -rate * softplus(a), decay = exp(log_decay); rate >= 0. Each output may be nullptr.
  void (*softplus_gate)(size_t n, const float* a, size_t a_stride, float rate, float* decay, float* log_decay);
  // y = scale * sigmoid(a): write strengths of the delta rule.
  void (*scaled_sigmoid)(size_t n, const float* a, size_t a_stride, float scale, float* y);
  // phi = phi / (sum(phi) + eps) for each row of m features; a row of zeros stays one.
  void (*sum_normalize)(size_t rows, size_t m, float eps, float* phi);
  // log_weight = |sigma * x|^2 / 2 for each row; sigma [d] or nullptr for 1. (RFA Eq. 12, MATH 1.2.3)
  void (*half_squared_norm)(size_t rows, size_t d, const float* x, const float* sigma, float* log_weight);
  // The running maximum m of the log weights of keys (MATH 1.2.3, 1.4): log_decay_t = m_{t-1} - m_t, write_t = exp(log_weight_t -
  // m_t). `first`: no token was seen since the reset; m is then ignored and log_decay of the first token is 0 (the state is all
  // zeros). A log weight that is NaN has the write NaN and leaves m, but a NaN in m stays.
  void (*running_max)(size_t tokens, bool first, const float* log_weight, float* m, float* log_decay, float* write);
  // The same for keys that are written at once: m' the maximum of m and all of them, carry = exp(m - m'), write_t =
  // exp(log_weight_t - m').
  void (*block_max)(size_t tokens, bool first, const float* log_weight, float* m, float* carry, float* write);
  // FAVOR+ with its epsilon (MATH 1.4), from features that are relative to a row's own maximum: phi = exp(-drop) phi + offset for
  // each row of m features; drop [rows] >= 0.
  void (*damp_features)(size_t rows, size_t m, const float* drop, float offset, float* phi);
  // Storage of states and rings: f16 rounds to nearest even (larger values saturate at +-65504, NaN stays NaN); int8 is symmetric
  // per row, scale = max|x| / 127. A row with a NaN or an infinity in it is stored as zeros with a scale that is NaN, so that all
  // of it is read as NaN.
  void (*f32_to_f16)(size_t n, const float* x, uint16_t* y);
  void (*quantize_i8)(size_t n, const float* x, int8_t* q, float* scale);

  FeatureKernel features[kFeatureMapCount];
  LinearStepsKernel linear_steps;
  void (*linear_chunk)(const LinearChunkArgs&);
  void (*linear_write)(const LinearWriteArgs&);
  void (*linear_read)(const LinearReadArgs&);
  void (*delta_step)(const DeltaStepArgs&);
  void (*delta_chunk)(const DeltaChunkArgs&);
  SlotControlStep slot_control_step[kCausalControlCount];
  SlotControlChunk slot_control_chunk[kCausalControlCount];
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
  // One row of x for the kernels below: the numbers of XNNPACK's qd8, moved up by 128 to u8. In `parts` of 1, 2 or 8, which divides
  // n: first the elements with index 0 modulo `parts`, then those with 1, and so on, as weights of a byte want to meet them. A row
  // that holds a NaN or an infinity, or whose range is not finite, is quantized to zeros with the scale NaN: whatever multiplies it
  // gives NaN.
  void (*quantize_qdu8)(size_t n, const float* x, size_t parts, uint8_t* q, Qdu8* params);
  // The same less 128, as XNNPACK has it. The zero point in `params` stays that of u8.
  void (*quantize_qd8)(size_t n, const float* x, int8_t* q, Qdu8* params);
  // int8 weights with a scale per output. q is [rows, in], contiguous; params [rows]. Exact in i32 while every sum of
  // (q - zero_point) w fits it, as for in <= kMaxInt8Inputs (255 * 128 * in < 2^31).
  void (*dense_qdu8_qc8w)(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                          const float* weight_scale, const float* bias, float* y, size_t y_stride);
  // int4 weights (element i in the low nibble of byte i/2 where i is even, else in the high one; value = nibble - 8) with a bf16
  // scale per kScaleBlock inputs of an output: [out, in / kScaleBlock]. in is a multiple of kScaleBlock, the rows of q are in 2
  // parts.
  void (*dense_qdu8_qb4w)(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const uint8_t* weight,
                          const uint16_t* block_scales, const float* bias, float* y, size_t y_stride);
  // int3 and int2 weights, in rows as model files have them.
  void (*dense_qdu8_planes)(const PlaneArgs&);
  // Packs W [out, in] into panels (dense/panels.h); multiplies x with one panel. Both nullptr: this table has nothing that is
  // faster than rows.
  void (*pack_panels)(unsigned bits, size_t in, size_t out, const uint8_t* weight, const uint16_t* block_scales, uint8_t* packed);
  void (*dense_qdu8_panel)(const PlaneArgs&);

  // More gates. step = min(max(softplus(a), least), most), log_decay = -rate * step; rate >= 0.
  void (*step_gate)(size_t n, const float* a, size_t a_stride, float rate, float least, float most, float* step, float* log_decay);
  // decay = b + (1 - b) sigmoid(a), key = (1 - b) sigmoid(-a), b the bound, or 0 where it is nullptr; key may be a.
  void (*tied_gate)(size_t n, const float* a, const float* bound, float* decay, float* key);
  // decay = exp(least * sigmoid(a)).
  void (*sigmoid_gate)(size_t n, const float* a, float least, float* decay);
  void (*replace_step)(const ReplaceStepArgs&);
  // y = o + c v for each of `heads` heads of dv, c = weight[head]; with q and k, c = sum_i weight[head, i] q_i k_i over the d
  // columns of the head. y may be o.
  void (*skip)(const SkipArgs&);
  // y = x + c (1 - sigmoid(logits)) (z - x), z nullptr: 0, c [n] or nullptr: 1. y may be any of the others.
  void (*blend)(const BlendArgs&);
};

// The scalar oracle: written to be read, never optimised.
const Kernels& Reference();

// Names of the tables that this CPU can run, best first, "reference" last.
Span<const char* const> KernelNames();

// The table of that name; nullptr: the best. Returns nullptr for a name that KernelNames() does not list. Lives for ever.
const Kernels* SelectKernels(const char* name);

}  // namespace tarn

#endif  // TARN_KERNELS_KERNELS_H_
