// int3 and int2 weights packed for vectors: panels of some outputs, side by side, so that a vector of sums is a vector of outputs
// and an element of x meets all of them. One layout for every instruction set:
//   f32 [kPanelOutputs]   sums of scale * weight, which a row's zero point multiplies
//   for every block of kScaleBlock inputs:
//     u8 [bits][kPanelOutputs][4]   planes (core/planes.h): byte (o, k) has the inputs 4 g + k, g < 8, of output o
//     bf16 [kPanelOutputs]          scales
// Outputs beyond the last one have scales of zero. Inputs stand so that rows of x, which are quantized in every run, need not be
// arranged in parts, as for rows of the file.
#ifndef TARN_KERNELS_DENSE_PANELS_H_
#define TARN_KERNELS_DENSE_PANELS_H_

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace tarn {

constexpr size_t kPanelOutputs = 16;
constexpr size_t kPanelPlaneBytes = 4 * kPanelOutputs;

constexpr size_t PanelScales(unsigned bits) { return bits * kPanelPlaneBytes; }  // where they begin in a block
constexpr size_t PanelBlockBytes(unsigned bits) { return PanelScales(bits) + kPanelOutputs * sizeof(uint16_t); }
constexpr size_t PanelBytes(unsigned bits, size_t in) {
  return kPanelOutputs * sizeof(float) + in / kScaleBlock * PanelBlockBytes(bits);
}
constexpr size_t PanelCount(size_t out) { return (out + kPanelOutputs - 1) / kPanelOutputs; }

// W [out, in] as dense_qdu8_planes takes it -> PanelCount(out) * PanelBytes(bits, in) bytes at `packed`.
void PackPanels(unsigned bits, size_t in, size_t out, const uint8_t* weight, const uint16_t* block_scales, uint8_t* packed);

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_PANELS_H_
