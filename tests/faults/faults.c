#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME_OF(name, error) #name,
#define ERROR_OF(name, error) error,
static const char* const kNames[] = {TARN_FAULT_KINDS(NAME_OF)};
static const int kErrors[] = {TARN_FAULT_KINDS(ERROR_OF)};

static uint64_t calls[TARN_FAULT_COUNT];
static int64_t blocks, mappings;
static int armed_kind = -1, armed_lasting, armed_trap;
static uint64_t armed_nth, failed;
static int call_file = -1;

static int64_t Add(int64_t* counter, int64_t number) { return __atomic_add_fetch(counter, number, __ATOMIC_RELAXED); }

void tarn_faults_arm(int kind, uint64_t nth, int lasting) {
  for (int i = 0; i < TARN_FAULT_COUNT; ++i) calls[i] = 0;
  failed = 0;
  armed_nth = nth;
  armed_lasting = lasting;
  __atomic_store_n(&armed_kind, kind, __ATOMIC_RELEASE);
}

uint64_t tarn_faults_disarm(void) {
  __atomic_store_n(&armed_kind, -1, __ATOMIC_RELEASE);
  return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

uint64_t tarn_faults_calls(int kind) { return __atomic_load_n(&calls[kind], __ATOMIC_RELAXED); }
int64_t tarn_faults_blocks(void) { return __atomic_load_n(&blocks, __ATOMIC_RELAXED); }
int64_t tarn_faults_mappings(void) { return __atomic_load_n(&mappings, __ATOMIC_RELAXED); }

/* Writes which call this is and a hash of the stack that leads to it, the same in every process. */
static void NoteCall(int kind, uint64_t number) {
  enum { kDepth = 64 };
  static __thread int inside; /* what is called here counts, but is no call of the program's */
  if (inside) return;
  inside = 1;
  void* stack[kDepth];
  const int depth = backtrace(stack, kDepth);
  uint64_t hash = 14695981039346656037u;
  for (int i = 1; i < depth; ++i) {
    Dl_info place;
    const uintptr_t base = dladdr(stack[i], &place) != 0 ? (uintptr_t)place.dli_fbase : 0;
    hash = (hash ^ ((uintptr_t)stack[i] - base)) * 1099511628211u;
  }
  char line[80];
  const int length =
      snprintf(line, sizeof(line), "%s %llu %llx\n", kNames[kind], (unsigned long long)number, (unsigned long long)hash);
  if (syscall(SYS_write, call_file, line, length) != length) _exit(3);
  inside = 0;
}

/* Counts the call. True, with errno set: it is to fail. */
static int Fails(int kind) {
  const uint64_t number = __atomic_add_fetch(&calls[kind], 1, __ATOMIC_RELAXED);
  if (call_file >= 0) NoteCall(kind, number);
  if (__atomic_load_n(&armed_kind, __ATOMIC_ACQUIRE) != kind) return 0;
  if (armed_lasting ? number < armed_nth : number != armed_nth) return 0;
  if (armed_trap) __builtin_trap();
  __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
  errno = kErrors[kind];
  return 1;
}

/* A stream after a call that failed, as ferror() sees it. */
static int FailsStream(int kind, FILE* stream) {
  if (stream == stderr || !Fails(kind)) return 0;
#if defined(__GLIBC__)
  stream->_flags |= 0x20; /* _IO_ERR_SEEN */
#endif
  return 1;
}

/* The C library's function, found when it is first called. (Assigning through void** is what POSIX says about dlsym.) */
#define REAL(name)               \
  static __typeof__(name)* real; \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name)

/* ---- the heap ---- */

/* `tarn` replaces malloc to count calls, and takes memory from these. */
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t number, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static void* Counted(void* block) {
  if (block != NULL) Add(&blocks, 1);
  return block;
}

#define DEFINE_MALLOC(name)                   \
  void* name(size_t bytes) {                  \
    REAL(name);                               \
    if (Fails(TARN_FAULT_alloc)) return NULL; \
    return Counted(real(bytes));              \
  }
#define DEFINE_CALLOC(name)                   \
  void* name(size_t number, size_t bytes) {   \
    REAL(name);                               \
    if (Fails(TARN_FAULT_alloc)) return NULL; \
    return Counted(real(number, bytes));      \
  }
#define DEFINE_REALLOC(name)                                          \
  void* name(void* block, size_t bytes) {                             \
    REAL(name);                                                       \
    if (Fails(TARN_FAULT_alloc)) return NULL;                         \
    void* moved = real(block, bytes);                                 \
    if (block == NULL) return Counted(moved);                         \
    if (bytes == 0) Add(&blocks, -1); /* glibc: the block is freed */ \
    return moved;                                                     \
  }
DEFINE_MALLOC(malloc)
DEFINE_MALLOC(__libc_malloc)
DEFINE_CALLOC(calloc)
DEFINE_CALLOC(__libc_calloc)
DEFINE_REALLOC(realloc)
DEFINE_REALLOC(__libc_realloc)
DEFINE_CALLOC(aligned_alloc)
DEFINE_CALLOC(memalign)
DEFINE_CALLOC(__libc_memalign)

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  REAL(posix_memalign);
  const int saved = errno;
  if (Fails(TARN_FAULT_alloc)) {
    errno = saved;
    return ENOMEM;
  }
  const int error = real(block, alignment, bytes);
  if (error == 0) Counted(*block);
  return error;
}

void free(void* block) {
  REAL(free);
  if (block != NULL) Add(&blocks, -1);
  real(block);
}

/* ---- threads, limits ---- */

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  REAL(pthread_create);
  return Fails(TARN_FAULT_thread) ? EAGAIN : real(thread, attributes, start, argument);
}

#define DEFINE(kind, result, failure, name, parameters, arguments) \
  result name parameters {                                         \
    REAL(name);                                                    \
    if (Fails(TARN_FAULT_##kind)) return failure;                  \
    return real arguments;                                         \
  }
DEFINE(limits, int, -1, getrlimit, (__rlimit_resource_t resource, struct rlimit* limit), (resource, limit))
DEFINE(limits, int, -1, sched_getaffinity, (pid_t process, size_t bytes, cpu_set_t* set), (process, bytes, set))
DEFINE(limits, int, -1, getentropy, (void* bytes, size_t count), (bytes, count))

/* ---- files ---- */

#define DEFINE_OPEN(name, parameters, arguments) \
  int name parameters {                          \
    REAL(name);                                  \
    mode_t mode = 0;                             \
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {  \
      va_list more;                              \
      va_start(more, flags);                     \
      mode = va_arg(more, mode_t);               \
      va_end(more);                              \
    }                                            \
    if (Fails(TARN_FAULT_open)) return -1;       \
    return real arguments;                       \
  }
DEFINE_OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
DEFINE_OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
DEFINE_OPEN(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
DEFINE_OPEN(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
DEFINE(open, FILE*, NULL, fopen, (const char* path, const char* mode), (path, mode))
DEFINE(open, FILE*, NULL, fopen64, (const char* path, const char* mode), (path, mode))
DEFINE(open, FILE*, NULL, fdopen, (int fd, const char* mode), (fd, mode))
DEFINE(open, DIR*, NULL, opendir, (const char* path), (path))
DEFINE(open, DIR*, NULL, fdopendir, (int fd), (fd))

DEFINE(read, ssize_t, -1, read, (int fd, void* bytes, size_t count), (fd, bytes, count))
DEFINE(read, ssize_t, -1, pread, (int fd, void* bytes, size_t count, off_t at), (fd, bytes, count, at))
DEFINE(read, struct dirent*, NULL, readdir, (DIR * folder), (folder))
DEFINE(read, struct dirent64*, NULL, readdir64, (DIR * folder), (folder))

ssize_t write(int fd, const void* bytes, size_t count) {
  REAL(write);
  if (fd != STDERR_FILENO && Fails(TARN_FAULT_write)) return -1;
  return real(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(writev);
  if (fd != STDERR_FILENO && Fails(TARN_FAULT_write)) return -1;
  return real(fd, parts, count);
}

#define DEFINE_STREAM(kind, result, failure, name, parameters, arguments) \
  result name parameters {                                                \
    REAL(name);                                                           \
    if (FailsStream(TARN_FAULT_##kind, stream)) return failure;           \
    return real arguments;                                                \
  }
DEFINE_STREAM(read, size_t, 0, fread, (void* to, size_t size, size_t count, FILE* stream), (to, size, count, stream))
DEFINE_STREAM(read, int, EOF, getc, (FILE * stream), (stream))
DEFINE_STREAM(write, size_t, 0, fwrite, (const void* from, size_t size, size_t count, FILE* stream), (from, size, count, stream))
DEFINE_STREAM(write, int, EOF, fputs, (const char* text, FILE* stream), (text, stream))
DEFINE_STREAM(write, int, EOF, fputc, (int byte, FILE* stream), (byte, stream))
DEFINE_STREAM(write, int, EOF, fflush, (FILE * stream), (stream))
DEFINE_STREAM(seek, int, -1, fseek, (FILE * stream, long at, int from), (stream, at, from))
DEFINE_STREAM(seek, int, -1, fseeko, (FILE * stream, off_t at, int from), (stream, at, from))
DEFINE(seek, off_t, -1, lseek, (int fd, off_t at, int from), (fd, at, from))

#define DEFINE_CLOSE(name, type)                   \
  int name(type file) {                            \
    REAL(name);                                    \
    const int result = real(file);                 \
    return Fails(TARN_FAULT_close) ? EOF : result; \
  }
DEFINE_CLOSE(close, int)
DEFINE_CLOSE(fclose, FILE*)
DEFINE_CLOSE(closedir, DIR*)

DEFINE(sync, int, -1, fsync, (int fd), (fd))
DEFINE(sync, int, -1, fdatasync, (int fd), (fd))
DEFINE(sync, int, -1, msync, (void* bytes, size_t count, int flags), (bytes, count, flags))
DEFINE(rename, int, -1, rename, (const char* from, const char* to), (from, to))
DEFINE(rename, int, -1, renameat, (int from_folder, const char* from, int to_folder, const char* to),
       (from_folder, from, to_folder, to))
DEFINE(rename, int, -1, mkdir, (const char* path, mode_t mode), (path, mode))
DEFINE(stat, int, -1, stat, (const char* path, struct stat* info), (path, info))
DEFINE(stat, int, -1, lstat, (const char* path, struct stat* info), (path, info))
DEFINE(stat, int, -1, fstat, (int fd, struct stat* info), (fd, info))
DEFINE(stat, int, -1, fstat64, (int fd, struct stat64* info), (fd, info))
DEFINE(stat, int, -1, access, (const char* path, int mode), (path, mode))
DEFINE(stat, int, -1, statvfs, (const char* path, struct statvfs* disk), (path, disk))
DEFINE(stat, char*, NULL, realpath, (const char* path, char* full), (path, full))
DEFINE(stat, char*, NULL, getcwd, (char* path, size_t bytes), (path, bytes))
DEFINE(stat, ssize_t, -1, readlink, (const char* path, char* to, size_t bytes), (path, to, bytes))
DEFINE(lock, int, -1, flock, (int fd, int operation), (fd, operation))

int posix_fallocate(int fd, off_t begin, off_t bytes) {
  REAL(posix_fallocate);
  const int saved = errno;
  if (!Fails(TARN_FAULT_space)) return real(fd, begin, bytes);
  errno = saved;
  return ENOSPC;
}

/* ---- mappings ---- */

static void* CountedMapping(void* base) {
  if (base != MAP_FAILED) Add(&mappings, 1);
  return base;
}

#define DEFINE_MMAP(name)                                                             \
  void* name(void* at, size_t bytes, int protection, int flags, int fd, off_t from) { \
    REAL(name);                                                                       \
    if (Fails(TARN_FAULT_mmap)) return MAP_FAILED;                                    \
    return CountedMapping(real(at, bytes, protection, flags, fd, from));              \
  }
DEFINE_MMAP(mmap)
DEFINE_MMAP(mmap64)
DEFINE(mmap, int, -1, mprotect, (void* bytes, size_t count, int protection), (bytes, count, protection))
DEFINE(mmap, int, -1, madvise, (void* bytes, size_t count, int advice), (bytes, count, advice))

int munmap(void* base, size_t bytes) {
  REAL(munmap);
  Add(&mappings, -1);
  return real(base, bytes);
}

/* `tarn` counts its own mmap, which is this. Every call of the system takes at most six words. */
long syscall(long number, ...) {
  REAL(syscall);
  long words[6];
  va_list more;
  va_start(more, number);
  for (int i = 0; i < 6; ++i) words[i] = va_arg(more, long);
  va_end(more);
  if (number == SYS_mmap && Fails(TARN_FAULT_mmap)) return -1;
  const long result = real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (number == SYS_mmap) CountedMapping((void*)result);
  return result;
}

/* ---- a process of its own ---- */

__attribute__((constructor)) static void Begin(void) {
  const char* wish = getenv("TARN_FAIL");
  armed_trap = getenv("TARN_FAIL_TRAP") != NULL;
  if (wish == NULL) return;
  if (strncmp(wish, "calls:", 6) == 0) {
    void* frame[1];
    backtrace(frame, 1); /* what it does once, it does here */
    const int file = open(wish + 6, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) _exit(3);
    tarn_faults_arm(-1, 0, 0);
    call_file = file;
    return;
  }
  for (int kind = 0; kind < TARN_FAULT_COUNT; ++kind) {
    const size_t length = strlen(kNames[kind]);
    if (strncmp(wish, kNames[kind], length) != 0 || wish[length] != ':') continue;
    char* end;
    const uint64_t nth = strtoull(wish + length + 1, &end, 10);
    tarn_faults_arm(kind, nth, *end == '+');
    return;
  }
  static const char message[] = "TARN_FAIL: expected KIND:N, KIND:N+ or calls:FILE\n";
  if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) _exit(3);
  _exit(2);
}
