/* Calls to the system that fail on demand. libtarn_faults.so stands before the C library, by LD_PRELOAD or by being linked first,
 * and lets the N-th call of a kind fail, once or from then on. It also counts what a program holds: blocks of the heap and
 * mappings.
 *
 * In a process of its own, by the environment:
 *   TARN_FAIL=alloc:17    the 17th allocation fails
 *   TARN_FAIL=alloc:17+   so do all that come after it
 *   TARN_FAIL=calls:FILE  nothing fails; FILE gets a line "kind N hash" for every call; the hash is that of the stack it came by
 *
 *   TARN_FAIL_TRAP=1      a trap where the call would fail: a debugger shows who makes it */
#ifndef TARN_TESTS_FAULTS_FAULTS_H_
#define TARN_TESTS_FAULTS_FAULTS_H_

#include <stdint.h>

/* Calls that fail for the same reasons. `unlink` and `munmap` never fail: what cannot be removed stays, whatever a program does. */
#define TARN_FAULT_KINDS(X)                                                                      \
  X(alloc, ENOMEM)  /* malloc, calloc, realloc, aligned ones */                                  \
  X(thread, EAGAIN) /* pthread_create */                                                         \
  X(open, EMFILE)   /* open, openat, fopen, opendir, fdopendir */                                \
  X(read, EIO)      /* read, fread, getc, readdir */                                             \
  X(write, ENOSPC)  /* write, writev, fwrite, fputs, fputc, fflush, but not to standard error */ \
  X(close, EIO)     /* close, fclose, closedir: the descriptor is gone all the same */           \
  X(mmap, ENOMEM)   /* mmap, mprotect, madvise */                                                \
  X(sync, EIO)      /* fsync, msync */                                                           \
  X(seek, EIO)      /* fseek, lseek */                                                           \
  X(rename, EIO)    /* rename, renameat, mkdir */                                                \
  X(stat, EACCES)   /* stat, fstat, access, statvfs, realpath, readlink, getcwd */               \
  X(space, ENOSPC)  /* posix_fallocate */                                                        \
  X(lock, ENOLCK)   /* flock */                                                                  \
  X(limits, EPERM)  /* getrlimit, sched_getaffinity, getentropy */

#define TARN_FAULT_ENUM(name, error) TARN_FAULT_##name,
enum { TARN_FAULT_KINDS(TARN_FAULT_ENUM) TARN_FAULT_COUNT };

/* The N-th call of a kind from now on fails, and with `lasting` all after it. Counting begins anew. */
void tarn_faults_arm(int kind, uint64_t nth, int lasting);
/* Nothing fails any more. Returns how many calls have failed. */
uint64_t tarn_faults_disarm(void);
/* Calls of a kind since the last arming. */
uint64_t tarn_faults_calls(int kind);
/* What the process holds now. */
int64_t tarn_faults_blocks(void);
int64_t tarn_faults_mappings(void);

#endif /* TARN_TESTS_FAULTS_FAULTS_H_ */
