// Without an operating system: the caller's thread alone. Results do not depend on how many there are.
#include "runtime/platform/thread_pool.h"

namespace tarn {

ThreadPool::~ThreadPool() = default;

uint64_t ThreadPool::Bytes(uint32_t) { return 0; }

Result<ThreadPool> ThreadPool::Create(uint32_t, Span<uint8_t>) { return ThreadPool(); }

void ThreadPool::Run(size_t count, void* context, Task task) const {
  for (size_t i = 0; i < count; ++i) task(context, 0, i);
}

}  // namespace tarn
