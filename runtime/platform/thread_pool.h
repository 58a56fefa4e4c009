// Threads of a session: the caller's, and workers that sleep between calls.
//
// Work is split over independent items (heads, output tiles), never over a sum, so that the number of threads cannot change a
// result. Threads take items, nobody deals them out: a worker that does not run costs nothing, unless it stopped in the middle of
// one (active_threads.h). README.md has the protocol.
#ifndef TARN_RUNTIME_PLATFORM_THREAD_POOL_H_
#define TARN_RUNTIME_PLATFORM_THREAD_POOL_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/result.h"
#include "core/span.h"

namespace tarn {

class ThreadPool {
 public:
  using Task = void (*)(void* context, size_t thread, size_t index);

  // One thread: the caller's; nothing is created.
  ThreadPool() = default;
  ThreadPool(ThreadPool&& other) noexcept { *this = std::move(other); }
  ThreadPool& operator=(ThreadPool&& other) noexcept {
    std::swap(workers_, other.workers_);
    std::swap(threads_, other.threads_);
    return *this;
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();  // ends the workers

  // The memory that a pool of so many threads works in; 0 for one. Stacks come from the system.
  static uint64_t Bytes(uint32_t threads);

  // `memory`: Bytes(threads) at least, aligned to kAlignment, the pool's for its life. Without an operating system there is the
  // caller's thread alone. Errors: TARN_OUT_OF_MEMORY if a thread cannot be started.
  static Result<ThreadPool> Create(uint32_t threads, Span<uint8_t> memory);

  uint32_t threads() const { return threads_; }

  // The pool for work that reads and writes about `cost` bytes of memory or does as many multiply-adds; nullptr (the caller's
  // thread alone) where that is too little to share.
  const ThreadPool* For(uint64_t cost) const { return cost < kLeastSharedCost || workers_ == nullptr ? nullptr : this; }

  // The cost of elements that are computed one by one from what another op has just written, often on another thread. As measured,
  // one takes as long as 32 bytes of weights take to read.
  static constexpr uint64_t ElementCost(uint64_t elements) { return 32 * elements; }

  // f(index, thread) for every index below count; thread < threads(). `cost`: of all of them together.
  template <typename F>
  void ParallelFor(size_t count, uint64_t cost, const F& f) const {
    if (For(cost) == nullptr) {
      for (size_t i = 0; i < count; ++i) f(i, size_t{0});
      return;
    }
    Run(count, const_cast<F*>(&f),
        [](void* context, size_t thread, size_t index) { (*static_cast<const F*>(context))(index, thread); });
  }

  // task(context, thread, index) for every index below count, however little work it is. One call at a time, none from a task.
  void Run(size_t count, void* context, Task task) const;

 private:
  struct Workers;

  // Handing work to another thread and waiting for it takes some microseconds. Below this (a weight matrix of 1 MiB in int8, read
  // in about 25 us) sharing loses.
  static constexpr uint64_t kLeastSharedCost = uint64_t{1} << 20;

  Workers* workers_ = nullptr;  // nullptr: one thread
  uint32_t threads_ = 1;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_THREAD_POOL_H_
