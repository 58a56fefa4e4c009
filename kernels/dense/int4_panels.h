// Int4 weights packed for rows of x that meet several outputs at a time. A panel is all weights of as many outputs as a kernel has
// in its vectors (Int4Panels::outputs), in the order in which they are read:
//
//   zero_sums  f32 [outputs]                  unit * sum of block scale * w, which a row's zero point multiplies
//   bias       f32 [outputs]
//   weights    u8 [blocks][4][outputs][4]     byte k of group g: inputs 4g + k (low nibble) and 16 + 4g + k of the block
//   scales     bf16 [blocks][outputs]
//
// Four bytes side by side, and the nibbles in them, are inputs of one output: what instructions for products of bytes add up. Those
// of a vector meet the same four elements of x. Outputs that there are not, in the last panel, have weights, scales and sums of 0.
#ifndef TARN_KERNELS_DENSE_INT4_PANELS_H_
#define TARN_KERNELS_DENSE_INT4_PANELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "runtime/core/arith.h"
#include "runtime/core/dtype.h"

namespace tarn {

// Where the parts of a panel lie, in bytes from its beginning; panels begin at multiples of 64.
struct Int4PanelLayout {
  constexpr Int4PanelLayout(size_t panel_outputs, size_t inputs)
      : outputs(panel_outputs),
        bias(outputs * sizeof(float)),
        weights(static_cast<size_t>(AlignUp(2 * bias))),
        scales(weights + outputs * inputs / 2),
        bytes(static_cast<size_t>(AlignUp(scales + inputs / kI4Block * outputs * sizeof(uint16_t)))) {}

  // The byte of weights, from `weights` on, that holds input i of an output.
  constexpr size_t Byte(size_t output, size_t i) const {
    const size_t group = i % (kI4Block / 2) / 4;
    return ((i / kI4Block * 4 + group) * outputs + output) * 4 + i % 4;
  }
  static constexpr bool IsHigh(size_t i) { return i % kI4Block >= kI4Block / 2; }

  size_t outputs;
  size_t bias;
  size_t weights;
  size_t scales;
  size_t bytes;
};

// The kernels for int4 panels that this CPU runs, not the reference's. A table of kernels (Kernels::int4_panels) has one of them;
// for tests and benchmarks.
Span<const Int4Panels* const> AllInt4Panels();

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_INT4_PANELS_H_
