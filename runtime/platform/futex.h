// Sleeping on a 32-bit word: the system call under every mutex, which Linux and Android share.
#ifndef TARN_RUNTIME_PLATFORM_FUTEX_H_
#define TARN_RUNTIME_PLATFORM_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace tarn {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel reads a plain word");

#if defined(SYS_futex)
constexpr long kFutexCall = SYS_futex;
#else  // 32-bit systems whose every system call has 64-bit time
constexpr long kFutexCall = SYS_futex_time64;
#endif

// Sleeps while *word is `value`; may return early for no reason.
inline void FutexWait(std::atomic<uint32_t>* word, uint32_t value) {
  syscall(kFutexCall, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

// Wakes the thread that sleeps on `word`, if one does.
inline void FutexWake(std::atomic<uint32_t>* word) { syscall(kFutexCall, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_FUTEX_H_
