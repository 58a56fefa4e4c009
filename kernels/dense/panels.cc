#include "kernels/dense/panels.h"

#include <algorithm>
#include <cstring>

#include "core/planes.h"

namespace tarn {
namespace {

float FloatOfBf16(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Output o of a panel, into a block that is zero. Returns the sum of its weights.
int PackBlock(unsigned bits, size_t in, const uint8_t* row, size_t first, size_t o, uint16_t scale, uint8_t* block) {
  int sum = 0;
  for (size_t i = 0; i < kScaleBlock; ++i) {
    const int w = PlaneWeightAt(bits, row, in, first + i);
    AddPlaneWeight(bits, w, i / 4, block + 4 * o + i % 4, kPanelPlaneBytes);
    sum += w;
  }
  std::memcpy(block + PanelScales(bits) + o * sizeof(scale), &scale, sizeof(scale));
  return sum;
}

}  // namespace

void PackPanels(unsigned bits, size_t in, size_t out, const uint8_t* weight, const uint16_t* block_scales, uint8_t* packed) {
  const size_t blocks = in / kScaleBlock;
  std::fill_n(packed, PanelCount(out) * PanelBytes(bits, in), uint8_t{0});
  for (size_t output = 0; output < out; ++output) {
    uint8_t* panel = packed + output / kPanelOutputs * PanelBytes(bits, in);
    const size_t o = output % kPanelOutputs;
    double sum = 0;
    for (size_t b = 0; b < blocks; ++b) {
      const uint16_t scale = block_scales[output * blocks + b];
      uint8_t* block = panel + kPanelOutputs * sizeof(float) + b * PanelBlockBytes(bits);
      sum += static_cast<double>(FloatOfBf16(scale)) *
             PackBlock(bits, in, weight + output * PlaneRowBytes(bits, in), b * kScaleBlock, o, scale, block);
    }
    const float rounded = static_cast<float>(sum);
    std::memcpy(panel + o * sizeof(rounded), &rounded, sizeof(rounded));
  }
}

}  // namespace tarn
