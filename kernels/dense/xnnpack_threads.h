// XNNPACK's threads are the session's.
#ifndef TARN_KERNELS_DENSE_XNNPACK_THREADS_H_
#define TARN_KERNELS_DENSE_XNNPACK_THREADS_H_

#include <pthreadpool.h>

#include "runtime/platform/thread_pool.h"

namespace tarn {

// What XNNPACK's functions take; nullptr stays nullptr, the caller's thread alone.
pthreadpool_t AsPthreadpool(const ThreadPool* threads);

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_XNNPACK_THREADS_H_
