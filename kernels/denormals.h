// Arithmetic without denormals, for a scope.
#ifndef TARN_KERNELS_DENORMALS_H_
#define TARN_KERNELS_DENORMALS_H_

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tarn {

// While it lives, the calling thread's vector units read denormals as 0 and make 0 of results that would be one. What the thread
// had before comes back at the end, on x86 and 32-bit ARM with the sticky exception flags.
//
// A state that decays and is not written any more (a feature that no key has now) ends among the denormals and stays there:
// 0.9 times the smallest one rounds to itself. Each operation on them takes x86 a hundred times as long, for ever, and some ARM
// cores longer. On other machines it does nothing.
class FlushDenormals {
 public:
#if defined(__SSE__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    Set(before_ | kFlushToZero);
  }
  ~FlushDenormals() { Set(before_); }
#elif defined(__ARM_NEON)
  FlushDenormals() {  // NEON always flushes; this is for VFP
    __asm__ volatile("vmrs %0, fpscr" : "=r"(before_));
    Set(before_ | kFlushToZero);
  }
  ~FlushDenormals() { Set(before_); }
#else
  FlushDenormals() {}  // not `= default`: an unused variable of this type is no mistake
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE__)
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned before_;
#elif defined(__aarch64__)
  static constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
  static void Set(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
  uint64_t before_;
#elif defined(__ARM_NEON)
  static constexpr uint32_t kFlushToZero = uint32_t{1} << 24;
  static void Set(uint32_t control) { __asm__ volatile("vmsr fpscr, %0" : : "r"(control) : "memory"); }
  uint32_t before_;
#endif
};

}  // namespace tarn

#endif  // TARN_KERNELS_DENORMALS_H_
