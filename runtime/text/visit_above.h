// The scan of logits for the few that matter: what makes looking at a vocabulary cheap.
#ifndef TARN_RUNTIME_TEXT_VISIT_ABOVE_H_
#define TARN_RUNTIME_TEXT_VISIT_ABOVE_H_

#include <algorithm>
#include <cstddef>

namespace tarn {

// Calls visit(i) in order for every x[i] that is not <= *limit, NaN included, until it returns false. `visit` may raise *limit.
// Almost no logit passes once the limit stands, so that whole blocks are turned down with one branch on vector compares.
template <typename Visit>
void VisitAbove(const float* x, size_t size, const float* limit, Visit visit) {
  constexpr size_t kBlock = 16;
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    if (count == kBlock) {
      int any = 0;
      for (size_t i = 0; i < kBlock; ++i) any |= !(x[begin + i] <= *limit);
      if (any == 0) continue;
    }
    for (size_t i = begin; i < begin + count; ++i) {
      if (!(x[i] <= *limit) && !visit(i)) return;
    }
  }
}

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_VISIT_ABOVE_H_
