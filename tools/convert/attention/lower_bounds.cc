// The least decays of HGRN and HGRN2, which follow from one tensor of all layers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/convert/attention/attention.h"

namespace tarn::convert {

AttentionTensor LowerBounds(const std::string& name, std::vector<uint32_t> shape, const AttentionContext& context) {
  const uint32_t layers = context.layers, layer = context.layer;
  uint32_t width = 1;
  for (const uint32_t size : shape) width *= size;
  const auto fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> bounds(width);
    for (uint32_t i = 0; i < width; ++i) {
      const auto at = [&](uint32_t l) { return static_cast<double>(parts[0][size_t{l} * width + i]); };
      double top = at(0), sum = 0, before = 0;
      for (uint32_t l = 0; l < layers; ++l) top = std::max(top, at(l));
      for (uint32_t l = 0; l < layers; ++l) {
        sum += std::exp(at(l) - top);
        if (l > 0 && l <= layer) before += std::exp(at(l) - top);
      }
      bounds[i] = static_cast<float>(before / sum);
    }
    return bounds;
  };
  AttentionTensor tensor{name, std::move(shape), {{"lower_bounds", {layers, width}, Init::kZero}}, fold};
  tensor.shared_parts = true;
  return tensor;
}

}  // namespace tarn::convert
