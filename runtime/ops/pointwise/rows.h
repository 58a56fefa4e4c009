// Work on rows that share nothing, on all threads where there is enough of it.
#ifndef TARN_RUNTIME_OPS_POINTWISE_ROWS_H_
#define TARN_RUNTIME_OPS_POINTWISE_ROWS_H_

#include <cstddef>

#include "runtime/ops/op.h"

namespace tarn {

// f(first, count) for ranges that cover `rows` rows of `width` elements of a result.
template <typename F>
void ForRows(const RunContext& context, size_t rows, size_t width, const F& f) {
  const uint64_t cost = ThreadPool::ElementCost(rows * width);
  if (context.threads->For(cost) == nullptr) return f(0, rows);
  context.threads->ParallelFor(rows, cost, [&](size_t row, size_t) { f(row, size_t{1}); });
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_POINTWISE_ROWS_H_
