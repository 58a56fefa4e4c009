// The scalar oracle, kernel by kernel. Contracts, shapes and units are those of kernels/kernels.h and the headers of the families;
// here stands what the comments there leave to the code: the equation as a loop. Sums run in f64 and are rounded to f32 once, where
// they are stored.
#ifndef TARN_KERNELS_REFERENCE_REFERENCE_H_
#define TARN_KERNELS_REFERENCE_REFERENCE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace tarn::reference {

// pointwise.cc
void LayerNorm(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, const float* bias, float eps, float* y,
               size_t y_stride);
void RmsNorm(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y, size_t y_stride);
void L2Normalize(size_t rows, size_t d, const float* x, size_t x_stride, float scale, float eps, bool inside, float* y);
void Relu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
void Gelu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
void GeluTanh(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
void Tanh(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
void Silu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
void ReluSquared(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride);
void SoftCap(size_t rows, size_t n, const float* x, size_t x_stride, float cap, float* y, size_t y_stride);
void GeluMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
             size_t y_stride);
void SigmoidMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                size_t y_stride);
void GeluTanhMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                 size_t y_stride);
void SiluMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
             size_t y_stride);
void Mul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
         size_t y_stride);
void Add(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y, size_t y_stride);
void ForgetGate(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay);
void VectorGate(size_t n, const float* a, float normalizer, float clamp_min, float* decay);
void SoftplusGate(size_t n, const float* a, size_t a_stride, float rate, float* decay, float* log_decay);
void StepGate(size_t n, const float* a, size_t a_stride, float rate, float least, float most, float* step, float* log_decay);
void TiedGate(size_t n, const float* a, const float* bound, float* decay, float* key);
void SigmoidGate(size_t n, const float* a, float least, float* decay);
void ScaledSigmoid(size_t n, const float* a, size_t a_stride, float scale, float* y);
void SumNormalize(size_t rows, size_t m, float eps, float* phi);
void HalfSquaredNorm(size_t rows, size_t d, const float* x, const float* sigma, float* log_weight);
void RunningMax(size_t tokens, bool first, const float* log_weight, float* m, float* log_decay, float* write);
void BlockMax(size_t tokens, bool first, const float* log_weight, float* m, float* carry, float* write);

// mixing.cc
void Skip(const SkipArgs& a);
void Blend(const BlendArgs& a);

// causal_conv.cc
void CausalConv(const CausalConvArgs& a);

// recurrence.cc
void DiagonalRecurrence(const RecurrenceArgs& r);

// embedding.cc
void ScaleF32(size_t n, const float* x, float scale, float* y);
void ScaleF16(size_t n, const uint16_t* x, float scale, float* y);
void ScaleI8(size_t n, const int8_t* x, float scale, float* y);
void ScaleI4(size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y);
void ScalePlanes(unsigned bits, size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y);
// A number of IEEE 754 binary16, and a weight of an int4 row of n elements: nibble - 8 times its block's scale.
double FromF16(uint16_t bits);
int I4At(const uint8_t* row, size_t i);
// The same of a row of int4 (bits 4), int3 or int2.
int BlockWeightAt(unsigned bits, const uint8_t* row, size_t n, size_t i);
double BlockScale(const uint16_t* block_scales, size_t i);
// Element i of row `row`, where rows lie `stride` elements apart.
float At(const StoredRows& rows, size_t stride, size_t row, size_t i);
void Put(const StateRows& rows, size_t stride, size_t row, size_t i, float x);
void F32ToF16(size_t n, const float* x, uint16_t* y);
void QuantizeI8(size_t n, const float* x, int8_t* q, float* scale);
void Sinusoid(size_t n, double position, const double* frequency, float* sine, float* cosine);
void Rope(size_t rows, size_t heads, size_t d, const float* x, size_t x_stride, const float* angles, float* y, size_t y_stride);

// features/positive.cc
void DampFeatures(size_t rows, size_t m, const float* drop, float offset, float* phi);

// linear_state.cc
void LinearSteps(size_t count, const LinearStepArgs* steps);
void LinearChunk(const LinearChunkArgs& a);
void LinearWrite(const LinearWriteArgs& a);
void LinearRead(const LinearReadArgs& a);

// delta.cc
void DeltaStep(const DeltaStepArgs& a);
void DeltaChunk(const DeltaChunkArgs& a);
void ReplaceStep(const ReplaceStepArgs& a);

// ../slot_controls/abc_mlp.cc, clustering_online.cc
void AbcBlock(const SlotControlArgs& a, float* top, float* carry, float* weight);
void NearestSlot(const NearestSlotArgs& a);

// slot_memory.cc
void SlotStep(const SlotStepArgs& a);
void SlotChunk(const SlotChunkArgs& a);
void SlotWrite(const SlotWriteArgs& a);
void SlotRead(const SlotReadArgs& a);

// cache.cc
void CacheAttend(const CacheArgs& a);

// scores.cc
void ScoreRows(const ScoreArgs& a, float* s);
void ScorePeak(const ScoreArgs& a, float* measure);
void SoftmaxRows(size_t rows, size_t n, float scale, float* p);
void WeighRows(size_t rows, size_t keys, size_t value_dim, const float* p, const float* v, size_t v_stride, float* o,
               size_t o_stride);

// hamming.cc
void NearestCode(size_t n, const uint64_t* codes, size_t center_count, const uint64_t* centers, uint32_t* nearest);

// dense.cc
void DenseF32(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const float* weight, const float* bias, float* y,
              size_t y_stride);
void DenseF16(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const uint16_t* weight, const float* bias,
              float* y, size_t y_stride);
void QuantizeQdu8(size_t n, const float* x, size_t parts, uint8_t* q, Qdu8* params);
void QuantizeQd8(size_t n, const float* x, int8_t* q, Qdu8* params);
void DenseQdu8Qc8w(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                   const float* weight_scale, const float* bias, float* y, size_t y_stride);
void DenseQdu8Qb4w(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const uint8_t* weight,
                   const uint16_t* block_scales, const float* bias, float* y, size_t y_stride);
void DenseQdu8Planes(const PlaneArgs& a);

}  // namespace tarn::reference

#endif  // TARN_KERNELS_REFERENCE_REFERENCE_H_
