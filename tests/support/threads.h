// A pool of threads and the memory that it works in.
#ifndef TARN_TESTS_SUPPORT_THREADS_H_
#define TARN_TESTS_SUPPORT_THREADS_H_

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "runtime/platform/thread_pool.h"

namespace tarn::test {

struct Threads {
  explicit Threads(uint32_t count) {
    if (count > 1) block = std::move(Block::Allocate(DefaultAllocator(), ThreadPool::Bytes(count), "threads").value());
    Result<ThreadPool> created = ThreadPool::Create(count, block.bytes());
    EXPECT_TRUE(created.ok()) << created.status().message();
    if (created.ok()) pool = std::move(created.value());
  }

  Block block;  // outlives the pool
  ThreadPool pool;
};

}  // namespace tarn::test

#endif  // TARN_TESTS_SUPPORT_THREADS_H_
