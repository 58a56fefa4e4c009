#undef _FILE_OFFSET_BITS  // else mmap is another name for mmap64; both are counted
#include "tools/tarn/allocation_counter.h"

#include <cstdlib>  // defines __GLIBC__

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TARN_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TARN_SANITIZED 1
#endif

#if defined(TARN_SANITIZED)

namespace tarn_cli {
const char* AllocationCounterMissing() { return "off: built with a sanitizer"; }
uint64_t AllocationCount() { return 0; }
}  // namespace tarn_cli

#elif !defined(__GLIBC__)

namespace tarn_cli {
const char* AllocationCounterMissing() { return "off: needs glibc"; }
uint64_t AllocationCount() { return 0; }
}  // namespace tarn_cli

#else

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

namespace {

std::atomic<uint64_t> count{0};

void Count() { count.fetch_add(1, std::memory_order_relaxed); }

void* Map(void* address, size_t length, int protection, int flags, int fd, int64_t offset) {
  Count();
#if defined(SYS_mmap2)  // 32-bit: the offset in units of 4 KiB
  return reinterpret_cast<void*>(
      syscall(SYS_mmap2, address, length, protection, flags, fd, static_cast<unsigned long>(offset >> 12)));
#else
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
#endif
}

}  // namespace

namespace tarn_cli {
const char* AllocationCounterMissing() { return nullptr; }
uint64_t AllocationCount() { return count.load(std::memory_order_relaxed); }
}  // namespace tarn_cli

#if defined(TARN_STATIC_TOOLS)
// Linked with --wrap=malloc and so on: every reference to malloc means __wrap_malloc, and __real_malloc means malloc.
#define TARN_REPLACEMENT(name) __wrap_##name
#define TARN_LIBC(name) __real_##name
#define TARN_SBRK __real_sbrk
#else
// The dynamic linker finds these before the C library's, for shared libraries too, since they are visible.
#define TARN_REPLACEMENT(name) name
#define TARN_LIBC(name) __libc_##name
#define TARN_SBRK __sbrk
#endif
#define TARN_REPLACE extern "C" __attribute__((visibility("default")))

extern "C" {
void* TARN_LIBC(malloc)(size_t);
void* TARN_LIBC(calloc)(size_t, size_t);
void* TARN_LIBC(realloc)(void*, size_t);
void* TARN_LIBC(memalign)(size_t, size_t);
void* TARN_LIBC(valloc)(size_t);
void* TARN_LIBC(pvalloc)(size_t);
void* TARN_SBRK(intptr_t);
}

TARN_REPLACE void* TARN_REPLACEMENT(malloc)(size_t size) noexcept {
  Count();
  return TARN_LIBC(malloc)(size);
}

TARN_REPLACE void* TARN_REPLACEMENT(calloc)(size_t number, size_t size) noexcept {
  Count();
  return TARN_LIBC(calloc)(number, size);
}

TARN_REPLACE void* TARN_REPLACEMENT(realloc)(void* pointer, size_t size) noexcept {
  Count();
  return TARN_LIBC(realloc)(pointer, size);
}

TARN_REPLACE void* TARN_REPLACEMENT(memalign)(size_t alignment, size_t size) noexcept {
  Count();
  return TARN_LIBC(memalign)(alignment, size);
}

TARN_REPLACE void* TARN_REPLACEMENT(aligned_alloc)(size_t alignment, size_t size) noexcept {
  Count();
  return TARN_LIBC(memalign)(alignment, size);
}

TARN_REPLACE int TARN_REPLACEMENT(posix_memalign)(void** pointer, size_t alignment, size_t size) noexcept {
  Count();
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  const int saved = errno;  // unlike its kin, this one leaves errno alone
  void* memory = TARN_LIBC(memalign)(alignment, size);
  errno = saved;
  if (memory == nullptr) return ENOMEM;
  *pointer = memory;
  return 0;
}

TARN_REPLACE void* TARN_REPLACEMENT(valloc)(size_t size) noexcept {
  Count();
  return TARN_LIBC(valloc)(size);
}

TARN_REPLACE void* TARN_REPLACEMENT(pvalloc)(size_t size) noexcept {
  Count();
  return TARN_LIBC(pvalloc)(size);
}

TARN_REPLACE void* TARN_REPLACEMENT(mmap)(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  return Map(address, length, protection, flags, fd, offset);
}

TARN_REPLACE void* TARN_REPLACEMENT(mmap64)(void* address, size_t length, int protection, int flags, int fd,
                                            off64_t offset) noexcept {
  return Map(address, length, protection, flags, fd, offset);
}

TARN_REPLACE void* TARN_REPLACEMENT(mremap)(void* address, size_t old_length, size_t new_length, int flags, ...) noexcept {
  Count();
  void* new_address = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    new_address = va_arg(arguments, void*);
    va_end(arguments);
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, address, old_length, new_length, flags, new_address));
}

TARN_REPLACE void* TARN_REPLACEMENT(sbrk)(intptr_t increment) noexcept {
  Count();
  return TARN_SBRK(increment);
}

#endif
