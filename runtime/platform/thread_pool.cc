#include "runtime/platform/thread_pool.h"

#include "runtime/core/arith.h"

#if defined(TARN_HAVE_XNNPACK)
#include <cpuinfo.h>
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

uint32_t FastCores() {
  // cpuinfo fails where /proc and /sys are hidden from the process; one thread is then the safe answer.
  if (!cpuinfo_initialize()) return 1;
  // cpuinfo sorts clusters by performance, fastest first. Cores of the same micro-architecture count as equally fast: on
  // some phones the prime core is a cluster of its own.
  uint32_t cores = 0;
  const cpuinfo_cluster* fastest = cpuinfo_get_cluster(0);
  if (fastest == nullptr) return 1;
  for (uint32_t i = 0; i < cpuinfo_get_clusters_count(); ++i) {
    const cpuinfo_cluster* cluster = cpuinfo_get_cluster(i);
    if (cluster->uarch == fastest->uarch) cores += cluster->core_count;
  }
  return cores == 0 ? 1 : cores;
}

#else  // no threads without pthreadpool

ThreadPool::~ThreadPool() = default;

// However many are wanted, the caller's does the work: results do not depend on it.
Result<ThreadPool> ThreadPool::Create(uint32_t) { return ThreadPool(); }

void ThreadPool::Run(size_t, void*, void (*)(void*, size_t, size_t)) const {}

uint32_t FastCores() { return 1; }

#endif

}  // namespace tarn
