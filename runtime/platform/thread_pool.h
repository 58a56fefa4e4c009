// Threads of a session: the caller's, and helpers that sleep between calls.
//
// Work is split over independent items (heads, output tiles), never over a sum, so that the number of threads cannot change a
// result.
#ifndef TARN_RUNTIME_PLATFORM_THREAD_POOL_H_
#define TARN_RUNTIME_PLATFORM_THREAD_POOL_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/core/result.h"

struct pthreadpool;

namespace tarn {

class ThreadPool {
 public:
  // One thread: the caller's; nothing is created.
  ThreadPool() = default;
  ThreadPool(ThreadPool&& other) noexcept { *this = std::move(other); }
  ThreadPool& operator=(ThreadPool&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(threads_, other.threads_);
    return *this;
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // A build without pthreadpool always runs on the caller's thread. Errors: TARN_OUT_OF_MEMORY.
  static Result<ThreadPool> Create(uint32_t threads);

  uint32_t threads() const { return threads_; }

  // The pool for work that reads and writes about `cost` bytes of memory or does as many multiply-adds; nullptr (the caller's
  // thread alone) where that is too little to share.
  pthreadpool* For(uint64_t cost) const { return cost < kLeastSharedCost ? nullptr : pool_; }

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

 private:
  // Handing work to another thread and waiting for it takes some microseconds, and far more when other programs keep the cores
  // busy. Below this (a weight matrix of 1 MiB in int8, read in about 25 us) sharing loses.
  static constexpr uint64_t kLeastSharedCost = uint64_t{1} << 20;

  void Run(size_t count, void* context, void (*task)(void* context, size_t thread, size_t index)) const;

  pthreadpool* pool_ = nullptr;
  uint32_t threads_ = 1;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_THREAD_POOL_H_
