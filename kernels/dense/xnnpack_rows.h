// A few rows of x times weights as XNNPACK packs them: decoding, speculation, small batches. To the bits of XNNPACK's own kernels,
// and faster; other numbers of rows stay with those, on the same packed weights.
//
// XNNPACK packs panels of some outputs, one behind the other. int4:
//   f32 [outputs]   what a row's zero point multiplies: minus the sum of block scale * weight
//   blocks of kScaleBlock inputs:
//     u8 [kScaleBlock / 2 * outputs]   two nibbles each, two's complement, in an order that each kernel states
//     bf16 [outputs]                the block's scales / 16: nibbles are multiplied in the upper half of a byte, as 16 * weight
//   f32 [outputs]   bias
// Its kernels form, of every block, an exact integer sum, and y = x scale * (zero point * first + sum over blocks of f32(sum) *
// scale) + bias in f32, in this order.
//
// int8:
//   i32 [outputs]   minus the sum of weights
//   i8 [inputs rounded up to 8][outputs] in groups of 8 inputs: [outputs][8], 0 behind the last input
//   f32 [outputs]   scale
//   f32 [outputs]   bias
// y = (f32(zero point * first + sum of q * weight) * x scale) * scale + bias, the integers exact.
//
// So do these, with the roundings of the kernel that XNNPACK has for the same CPU.
#ifndef TARN_KERNELS_DENSE_XNNPACK_ROWS_H_
#define TARN_KERNELS_DENSE_XNNPACK_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dense/dense.h"
#include "kernels/kernels.h"

namespace tarn {

struct QuantizedRows {
  size_t rows;
  size_t inputs;       // a multiple of kScaleBlock with int4
  const uint8_t* q;    // [rows, inputs], i8, or u8 where the kernel wants that; up to 7 bytes behind them are read
  const Qdu8* params;  // [rows]
};

struct RowKernel {
  const char* name;
  DenseWeights type;
  size_t outputs;                // of a panel
  bool wants_u8;                 // q as quantize_qdu8 makes it, not as quantize_qd8 does
  size_t least_rows, most_rows;  // XNNPACK's own kernel is as fast for others
  // y [rows, outputs] for the first `outputs` of a panel's outputs.
  void (*multiply)(const QuantizedRows& x, const uint8_t* panel, size_t outputs, float* y, size_t y_stride);

  constexpr bool Takes(size_t rows) const { return least_rows <= rows && rows <= most_rows; }
  constexpr size_t PanelBytes(size_t inputs) const {
    if (type == DenseWeights::kQC8W) return outputs * (3 * sizeof(float) + (inputs + 7) / 8 * 8);
    return outputs * (2 * sizeof(float) + inputs / 2 + inputs / kScaleBlock * sizeof(uint16_t));
  }
};

// The kernel for what XNNPACK packs on this CPU; nullptr where XNNPACK's own is as fast.
const RowKernel* FindRowKernel(DenseWeights type);

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_XNNPACK_ROWS_H_
