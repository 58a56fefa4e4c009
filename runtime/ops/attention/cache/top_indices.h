// The largest of some scores.
#ifndef TARN_RUNTIME_OPS_ATTENTION_CACHE_TOP_INDICES_H_
#define TARN_RUNTIME_OPS_ATTENTION_CACHE_TOP_INDICES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tarn {

// indices [count]: the numbers of the `count` largest of n scores, ascending; count <= n. Of equal scores the lower number wins. A
// NaN is less than everything: the order has to be one even where a model is broken.
//
// The chosen ones stand in a heap with the least of them on top, which few of the others get past where they are many.
inline void TopIndices(const float* scores, size_t n, size_t count, uint32_t* indices) {
  if (count == 0) return;
  const auto rank = [scores](uint32_t i) { return std::isnan(scores[i]) ? -HUGE_VALF : scores[i]; };
  const auto before = [rank](uint32_t a, uint32_t b) {
    const float x = rank(a), y = rank(b);
    return x != y ? x > y : a < b;
  };
  for (size_t i = 0; i < count; ++i) indices[i] = static_cast<uint32_t>(i);
  std::make_heap(indices, indices + count, before);
  for (size_t i = count; i < n; ++i) {
    if (!before(static_cast<uint32_t>(i), indices[0])) continue;
    std::pop_heap(indices, indices + count, before);
    indices[count - 1] = static_cast<uint32_t>(i);
    std::push_heap(indices, indices + count, before);
  }
  std::sort(indices, indices + count);
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_TOP_INDICES_H_
