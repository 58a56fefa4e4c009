// The largest of some scores.
#ifndef TARN_RUNTIME_OPS_TOP_INDICES_H_
#define TARN_RUNTIME_OPS_TOP_INDICES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tarn {

// indices [n]: first the numbers of the `count` largest of n scores, ascending, then the others. Of equal scores the lower number
// wins. A NaN is less than everything: the order has to be one even where a model is broken.
inline void TopIndices(const float* scores, size_t n, size_t count, uint32_t* indices) {
  for (size_t i = 0; i < n; ++i) indices[i] = static_cast<uint32_t>(i);
  const auto rank = [scores](uint32_t i) { return std::isnan(scores[i]) ? -HUGE_VALF : scores[i]; };
  const auto before = [rank](uint32_t a, uint32_t b) {
    const float x = rank(a), y = rank(b);
    return x != y ? x > y : a < b;
  };
  if (count < n) std::nth_element(indices, indices + count, indices + n, before);
  std::sort(indices, indices + count);
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_TOP_INDICES_H_
