// Work of a dense layer, split over threads.
#ifndef TARN_KERNELS_DENSE_SPLIT_H_
#define TARN_KERNELS_DENSE_SPLIT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/platform/thread_pool.h"

namespace tarn {

// Calls f(first, count) for ranges of at most `step` that cover `total`, on the pool if there is one.
template <typename F>
void Split(const ThreadPool* threads, size_t total, size_t step, const F& f) {
  const ThreadPool one;
  (threads != nullptr ? *threads : one).ParallelFor((total + step - 1) / step, UINT64_MAX, [&](size_t index, size_t) {
    const size_t first = index * step;
    f(first, std::min(step, total - first));
  });
}

// Calls f(row) for all rows of x, of `inputs` elements each, on the pool if that is enough work.
template <typename F>
void SplitRows(const ThreadPool* threads, size_t rows, size_t inputs, const F& f) {
  const ThreadPool* shared = threads == nullptr ? nullptr : threads->For(ThreadPool::ElementCost(rows * inputs));
  Split(shared, rows, 1, [&](size_t row, size_t) { f(row); });
}

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_SPLIT_H_
