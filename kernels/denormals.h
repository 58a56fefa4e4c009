// Arithmetic without denormals, for a scope.
#ifndef TARN_KERNELS_DENORMALS_H_
#define TARN_KERNELS_DENORMALS_H_

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tarn {

// While it lives, the calling thread's vector units read denormals as 0 and make 0 of results that would be one. What the thread
// had before comes back at the end, sticky exception flags included.
//
// A state that decays and is not written any more (a feature that no key has now) ends among the denormals and stays there:
// 0.9 times the smallest one rounds to itself. Each operation on them takes x86 a hundred times as long, for ever. The other
// machines compute with them at full speed; there it does nothing.
class FlushDenormals {
 public:
#if defined(__SSE__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() {}  // not `= default`: an unused variable of this type is no mistake
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#if defined(__SSE__)
 private:
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned before_;
#endif
};

}  // namespace tarn

#endif  // TARN_KERNELS_DENORMALS_H_
