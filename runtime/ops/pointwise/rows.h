// Work on rows that share nothing, on all threads where there is enough of it.
#ifndef TARN_RUNTIME_OPS_POINTWISE_ROWS_H_
#define TARN_RUNTIME_OPS_POINTWISE_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/ops/op.h"

namespace tarn {

// f(first, count) for ranges that cover `rows` rows of `width` elements of a result.
template <typename F>
void ForRows(const RunContext& context, size_t rows, size_t width, const F& f) {
  const uint64_t cost = ThreadPool::ElementCost(uint64_t{rows} * width);
  if (context.threads->For(cost) == nullptr) return f(0, rows);
  const size_t step = std::max<size_t>(1024 / width, 1);  // so that a call has some elements
  context.threads->ParallelFor((rows + step - 1) / step, cost, [&](size_t index, size_t) {
    const size_t first = index * step;
    f(first, std::min(step, rows - first));
  });
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_POINTWISE_ROWS_H_
