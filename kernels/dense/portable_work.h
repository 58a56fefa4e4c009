// What runs of layers on the portable side are made of: rows are quantized, then outputs are multiplied. Functions of these files
// alone, so that each is compiled for its caller.
#ifndef TARN_KERNELS_DENSE_PORTABLE_WORK_H_
#define TARN_KERNELS_DENSE_PORTABLE_WORK_H_

#include "core/arith.h"
#include "core/planes.h"
#include "kernels/dense/dense.h"

namespace tarn {

static inline bool HasPanels(const DenseSpec& spec) {
  return PlaneBits(spec.type) != 0 && !spec.in_place && spec.kernels->dense_qdu8_panel != nullptr;
}

// In how many parts the kernel wants a row of x.
static inline size_t PartsOf(const DenseSpec& spec) {
  if (spec.type == DenseWeights::kQB4W) return 2;
  return PlaneBits(spec.type) != 0 && !HasPanels(spec) ? 8 : 1;
}

// Scratch of a quantized layer: the rows' scales and zero points, of planes the sums of their blocks, then the quantized rows.
static inline uint64_t ParameterBytes(const DenseSpec& spec) { return AlignUp(spec.max_rows * sizeof(Qdu8)); }
static inline uint64_t SumBytes(const DenseSpec& spec) {
  return PlaneBits(spec.type) != 0 ? AlignUp(spec.max_rows * (spec.inputs / kScaleBlock) * sizeof(int32_t)) : 0;
}

// What a run works on. Its loops, over rows to quantize and over outputs, are over items that share nothing: threads change no
// result.
struct PortableWork {
  const DenseSpec& spec;
  size_t rows;
  const float* x;
  float* y;
  uint8_t* quantized;  // [rows, inputs]
  Qdu8* parameters;    // [rows]
  int32_t* sums;       // [rows, inputs / kScaleBlock], of planes only
};

// `factor` times the sum of each block of a row, which stands in `parts`.
static inline void SumBlocks(int32_t factor, size_t inputs, size_t parts, const uint8_t* q, int32_t* sums) {
  const size_t part = inputs / parts, elements = kScaleBlock / parts;
  for (size_t b = 0; b < inputs / kScaleBlock; ++b) {
    int32_t sum = 0;
    for (size_t p = 0; p < parts; ++p) {
      for (size_t i = 0; i < elements; ++i) sum += q[p * part + b * elements + i];
    }
    sums[b] = factor * sum;
  }
}

static inline void QuantizeRow(const PortableWork& work, size_t row) {
  const DenseSpec& spec = work.spec;
  const size_t parts = PartsOf(spec);
  uint8_t* q = work.quantized + row * spec.inputs;
  spec.kernels->quantize_qdu8(spec.inputs, work.x + row * spec.x_stride, parts, q, work.parameters + row);
  if (const unsigned bits = PlaneBits(spec.type); bits != 0) {
    SumBlocks(-PlaneOffset(bits), spec.inputs, parts, q, work.sums + row * (spec.inputs / kScaleBlock));
  }
}

// Planes from `weight` on, for the outputs from o on.
static inline PlaneArgs PlaneArgsOf(const PortableWork& work, const uint8_t* weight, size_t o, size_t count) {
  const DenseSpec& spec = work.spec;
  const float* bias = spec.bias == nullptr ? nullptr : spec.bias + o;
  return {PlaneBits(spec.type),
          work.rows,
          spec.inputs,
          count,
          work.quantized,
          work.sums,
          work.parameters,
          weight,
          spec.block_scales + o * (spec.inputs / kScaleBlock),
          bias,
          work.y + o,
          spec.y_stride};
}

// Outputs o to o + count, of all rows.
static inline void Multiply(const PortableWork& work, size_t o, size_t count) {
  const DenseSpec& spec = work.spec;
  const Kernels& kernels = *spec.kernels;
  const size_t at = o * spec.inputs;  // int4, int3 and int2 have more weights than a size_t may count
  const float* bias = spec.bias == nullptr ? nullptr : spec.bias + o;
  float* y = work.y + o;
  switch (spec.type) {
    case DenseWeights::kF32:
      return kernels.dense_f32(work.rows, spec.inputs, count, work.x, spec.x_stride, static_cast<const float*>(spec.weight) + at,
                               bias, y, spec.y_stride);
    case DenseWeights::kF16:
      return kernels.dense_f16(work.rows, spec.inputs, count, work.x, spec.x_stride, static_cast<const uint16_t*>(spec.weight) + at,
                               bias, y, spec.y_stride);
    case DenseWeights::kQC8W:
      return kernels.dense_qdu8_qc8w(work.rows, spec.inputs, count, work.quantized, work.parameters,
                                     static_cast<const int8_t*>(spec.weight) + at, spec.scales + o, bias, y, spec.y_stride);
    case DenseWeights::kQB3W:
    case DenseWeights::kQB2W: {
      const uint8_t* weight = static_cast<const uint8_t*>(spec.weight) + o * PlaneRowBytes(PlaneBits(spec.type), spec.inputs);
      return kernels.dense_qdu8_planes(PlaneArgsOf(work, weight, o, count));
    }
    case DenseWeights::kQB4W:
      return kernels.dense_qdu8_qb4w(work.rows, spec.inputs, count, work.quantized, work.parameters,
                                     static_cast<const uint8_t*>(spec.weight) + o * (spec.inputs / 2),
                                     spec.block_scales + o * (spec.inputs / kScaleBlock), bias, y, spec.y_stride);
  }
}

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_PORTABLE_WORK_H_
