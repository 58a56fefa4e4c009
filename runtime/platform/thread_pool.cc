#include "runtime/platform/thread_pool.h"

#if defined(TARN_HAVE_XNNPACK)
#include <pthreadpool.h>
#endif

namespace tarn {

#if defined(TARN_HAVE_XNNPACK)

ThreadPool::~ThreadPool() {
  if (pool_ != nullptr) pthreadpool_destroy(pool_);
}

Result<ThreadPool> ThreadPool::Create(uint32_t threads) {
  ThreadPool pool;
  if (threads <= 1) return pool;
  pool.pool_ = pthreadpool_create(threads);
  if (pool.pool_ == nullptr) return Error(TARN_OUT_OF_MEMORY, "cannot start %u threads", threads);
  pool.threads_ = threads;
  return pool;
}

void ThreadPool::Run(size_t count, void* context, void (*task)(void*, size_t, size_t)) const {
  pthreadpool_parallelize_1d_with_thread(pool_, task, context, count, /*flags=*/0);
}

#else  // no threads without pthreadpool

ThreadPool::~ThreadPool() = default;

// However many are wanted, the caller's does the work: results do not depend on it.
Result<ThreadPool> ThreadPool::Create(uint32_t) { return ThreadPool(); }

void ThreadPool::Run(size_t, void*, void (*)(void*, size_t, size_t)) const {}

#endif

}  // namespace tarn
