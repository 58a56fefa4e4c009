// The functions of pthreadpool.h that XNNPACK calls, over ThreadPool. libpthreadpool itself is not linked: its barrier spins for
// threads that are not running, its items are dealt to them, and it ignores a thread that does not start.
//
// Every one of them is a loop over up to six dimensions, the last ones in tiles. All tiles together are one range of items.
#include "kernels/dense/xnnpack_threads.h"

#include <cpuinfo.h>

#include <algorithm>
#include <utility>

#include "kernels/denormals.h"

namespace tarn {
namespace {

const ThreadPool* FromPthreadpool(pthreadpool_t pool) { return reinterpret_cast<const ThreadPool*>(pool); }

// What a task is told besides its place.
enum class Told { kNothing, kThread, kCore, kCoreAndThread };

// The kind of core (index into cpuinfo's) that a thread is on: kernels differ between the cores of a big.LITTLE system.
struct Cores {
  uint32_t otherwise;  // where it is not known, or has no kernel
  uint32_t last;       // kind that there is a kernel for

  uint32_t Current() const {
#if CPUINFO_ARCH_ARM || CPUINFO_ARCH_ARM64
    const uint32_t core = cpuinfo_get_current_uarch_index_with_default(otherwise);
    return core <= last ? core : otherwise;
#else  // elsewhere XNNPACK has one kind of kernel, and cpuinfo's tables are not linked
    return otherwise;
#endif
  }
};

template <size_t kDims>
struct Range {
  size_t size[kDims];
  size_t step[kDims];  // 1 but for the tiled dimensions

  size_t Tiles(size_t dim) const { return size[dim] / step[dim] + (size[dim] % step[dim] != 0); }
  size_t Items() const {
    size_t items = 1;
    for (size_t dim = 0; dim < kDims; ++dim) items *= Tiles(dim);
    return items;
  }
};

template <Told kTold, size_t kDims, size_t kTiled, typename Task>
struct Loop {
  Task task;
  void* argument;
  Range<kDims> range;
  Cores cores;

  // The last index moves fastest.
  static void Item(void* context, size_t thread, size_t item) {
    const Loop& loop = *static_cast<const Loop*>(context);
    size_t first[kDims], count[kDims];
    for (size_t dim = kDims; dim-- > 0;) {
      const size_t tiles = loop.range.Tiles(dim);
      first[dim] = item % tiles * loop.range.step[dim];
      count[dim] = std::min(loop.range.step[dim], loop.range.size[dim] - first[dim]);
      item /= tiles;
    }
    loop.Call(thread, first, count + (kDims - kTiled), std::make_index_sequence<kDims>(), std::make_index_sequence<kTiled>());
  }

  template <size_t... kDim, size_t... kTile>
  void Call(size_t thread, const size_t* first, const size_t* count, std::index_sequence<kDim...>,
            std::index_sequence<kTile...>) const {
    const FlushDenormals flush;  // XNNPACK always asks for it
    static_cast<void>(thread), static_cast<void>(count);
    if constexpr (kTold == Told::kNothing) task(argument, first[kDim]..., count[kTile]...);
    if constexpr (kTold == Told::kThread) task(argument, thread, first[kDim]..., count[kTile]...);
    if constexpr (kTold == Told::kCore) task(argument, cores.Current(), first[kDim]..., count[kTile]...);
    if constexpr (kTold == Told::kCoreAndThread) task(argument, cores.Current(), thread, first[kDim]..., count[kTile]...);
  }
};

template <size_t kTiled, Told kTold = Told::kNothing, size_t kDims, typename Task>
void Run(pthreadpool_t pool, Task task, void* argument, const Range<kDims>& range, Cores cores = {}) {
  using ThisLoop = Loop<kTold, kDims, kTiled, Task>;
  ThisLoop loop = {task, argument, range, cores};
  const size_t items = range.Items();
  if (pool != nullptr) return FromPthreadpool(pool)->Run(items, &loop, ThisLoop::Item);
  for (size_t item = 0; item < items; ++item) ThisLoop::Item(&loop, 0, item);
}

}  // namespace

pthreadpool_t AsPthreadpool(const ThreadPool* threads) { return reinterpret_cast<pthreadpool_t>(const_cast<ThreadPool*>(threads)); }

}  // namespace tarn

using tarn::Range;
using tarn::Run;
using tarn::Told;

extern "C" {

size_t pthreadpool_get_threads_count(pthreadpool_t pool) { return pool == nullptr ? 1 : tarn::FromPthreadpool(pool)->threads(); }

void pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task, void* argument, size_t i, uint32_t) {
  Run<0>(pool, task, argument, Range<1>{{i}, {1}});
}

void pthreadpool_parallelize_1d_with_thread(pthreadpool_t pool, pthreadpool_task_1d_with_thread_t task, void* argument, size_t i,
                                            uint32_t) {
  Run<0, Told::kThread>(pool, task, argument, Range<1>{{i}, {1}});
}

void pthreadpool_parallelize_1d_tile_1d(pthreadpool_t pool, pthreadpool_task_1d_tile_1d_t task, void* argument, size_t i,
                                        size_t tile_i, uint32_t) {
  Run<1>(pool, task, argument, Range<1>{{i}, {tile_i}});
}

void pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task, void* argument, size_t i, size_t j, uint32_t) {
  Run<0>(pool, task, argument, Range<2>{{i, j}, {1, 1}});
}

void pthreadpool_parallelize_2d_with_thread(pthreadpool_t pool, pthreadpool_task_2d_with_thread_t task, void* argument, size_t i,
                                            size_t j, uint32_t) {
  Run<0, Told::kThread>(pool, task, argument, Range<2>{{i, j}, {1, 1}});
}

void pthreadpool_parallelize_2d_tile_1d(pthreadpool_t pool, pthreadpool_task_2d_tile_1d_t task, void* argument, size_t i, size_t j,
                                        size_t tile_j, uint32_t) {
  Run<1>(pool, task, argument, Range<2>{{i, j}, {1, tile_j}});
}

void pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool, pthreadpool_task_2d_tile_2d_t task, void* argument, size_t i, size_t j,
                                        size_t tile_i, size_t tile_j, uint32_t) {
  Run<2>(pool, task, argument, Range<2>{{i, j}, {tile_i, tile_j}});
}

void pthreadpool_parallelize_3d(pthreadpool_t pool, pthreadpool_task_3d_t task, void* argument, size_t i, size_t j, size_t k,
                                uint32_t) {
  Run<0>(pool, task, argument, Range<3>{{i, j, k}, {1, 1, 1}});
}

void pthreadpool_parallelize_3d_tile_1d(pthreadpool_t pool, pthreadpool_task_3d_tile_1d_t task, void* argument, size_t i, size_t j,
                                        size_t k, size_t tile_k, uint32_t) {
  Run<1>(pool, task, argument, Range<3>{{i, j, k}, {1, 1, tile_k}});
}

void pthreadpool_parallelize_3d_tile_1d_with_thread(pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_thread_t task,
                                                    void* argument, size_t i, size_t j, size_t k, size_t tile_k, uint32_t) {
  Run<1, Told::kThread>(pool, task, argument, Range<3>{{i, j, k}, {1, 1, tile_k}});
}

void pthreadpool_parallelize_3d_tile_2d(pthreadpool_t pool, pthreadpool_task_3d_tile_2d_t task, void* argument, size_t i, size_t j,
                                        size_t k, size_t tile_j, size_t tile_k, uint32_t) {
  Run<2>(pool, task, argument, Range<3>{{i, j, k}, {1, tile_j, tile_k}});
}

void pthreadpool_parallelize_4d(pthreadpool_t pool, pthreadpool_task_4d_t task, void* argument, size_t i, size_t j, size_t k,
                                size_t l, uint32_t) {
  Run<0>(pool, task, argument, Range<4>{{i, j, k, l}, {1, 1, 1, 1}});
}

void pthreadpool_parallelize_4d_tile_2d(pthreadpool_t pool, pthreadpool_task_4d_tile_2d_t task, void* argument, size_t i, size_t j,
                                        size_t k, size_t l, size_t tile_k, size_t tile_l, uint32_t) {
  Run<2>(pool, task, argument, Range<4>{{i, j, k, l}, {1, 1, tile_k, tile_l}});
}

void pthreadpool_parallelize_5d(pthreadpool_t pool, pthreadpool_task_5d_t task, void* argument, size_t i, size_t j, size_t k,
                                size_t l, size_t m, uint32_t) {
  Run<0>(pool, task, argument, Range<5>{{i, j, k, l, m}, {1, 1, 1, 1, 1}});
}

void pthreadpool_parallelize_5d_tile_2d(pthreadpool_t pool, pthreadpool_task_5d_tile_2d_t task, void* argument, size_t i, size_t j,
                                        size_t k, size_t l, size_t m, size_t tile_l, size_t tile_m, uint32_t) {
  Run<2>(pool, task, argument, Range<5>{{i, j, k, l, m}, {1, 1, 1, tile_l, tile_m}});
}

void pthreadpool_parallelize_6d_tile_2d(pthreadpool_t pool, pthreadpool_task_6d_tile_2d_t task, void* argument, size_t i, size_t j,
                                        size_t k, size_t l, size_t m, size_t n, size_t tile_m, size_t tile_n, uint32_t) {
  Run<2>(pool, task, argument, Range<6>{{i, j, k, l, m, n}, {1, 1, 1, 1, tile_m, tile_n}});
}

void pthreadpool_parallelize_2d_tile_1d_with_uarch(pthreadpool_t pool, pthreadpool_task_2d_tile_1d_with_id_t task, void* argument,
                                                   uint32_t otherwise, uint32_t last, size_t i, size_t j, size_t tile_j, uint32_t) {
  Run<1, Told::kCore>(pool, task, argument, Range<2>{{i, j}, {1, tile_j}}, {otherwise, last});
}

void pthreadpool_parallelize_2d_tile_2d_with_uarch(pthreadpool_t pool, pthreadpool_task_2d_tile_2d_with_id_t task, void* argument,
                                                   uint32_t otherwise, uint32_t last, size_t i, size_t j, size_t tile_i,
                                                   size_t tile_j, uint32_t) {
  Run<2, Told::kCore>(pool, task, argument, Range<2>{{i, j}, {tile_i, tile_j}}, {otherwise, last});
}

void pthreadpool_parallelize_3d_tile_1d_with_uarch(pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_id_t task, void* argument,
                                                   uint32_t otherwise, uint32_t last, size_t i, size_t j, size_t k, size_t tile_k,
                                                   uint32_t) {
  Run<1, Told::kCore>(pool, task, argument, Range<3>{{i, j, k}, {1, 1, tile_k}}, {otherwise, last});
}

void pthreadpool_parallelize_3d_tile_1d_with_uarch_with_thread(pthreadpool_t pool,
                                                               pthreadpool_task_3d_tile_1d_with_id_with_thread_t task,
                                                               void* argument, uint32_t otherwise, uint32_t last, size_t i,
                                                               size_t j, size_t k, size_t tile_k, uint32_t) {
  Run<1, Told::kCoreAndThread>(pool, task, argument, Range<3>{{i, j, k}, {1, 1, tile_k}}, {otherwise, last});
}

void pthreadpool_parallelize_3d_tile_2d_with_uarch(pthreadpool_t pool, pthreadpool_task_3d_tile_2d_with_id_t task, void* argument,
                                                   uint32_t otherwise, uint32_t last, size_t i, size_t j, size_t k, size_t tile_j,
                                                   size_t tile_k, uint32_t) {
  Run<2, Told::kCore>(pool, task, argument, Range<3>{{i, j, k}, {1, tile_j, tile_k}}, {otherwise, last});
}

void pthreadpool_parallelize_4d_tile_2d_with_uarch(pthreadpool_t pool, pthreadpool_task_4d_tile_2d_with_id_t task, void* argument,
                                                   uint32_t otherwise, uint32_t last, size_t i, size_t j, size_t k, size_t l,
                                                   size_t tile_k, size_t tile_l, uint32_t) {
  Run<2, Told::kCore>(pool, task, argument, Range<4>{{i, j, k, l}, {1, 1, tile_k, tile_l}}, {otherwise, last});
}

}  // extern "C"
