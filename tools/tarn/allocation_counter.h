// Counts every allocation of the process, in all threads: the malloc family (operator new ends there), mmap, mremap and sbrk.
//
// It replaces those functions in the executable and forwards to the C library's own, so that the library under test, its
// dependencies and the C++ runtime are all counted. XNNPACK's allocator hook ends in malloc as well.
#ifndef TARN_TOOLS_TARN_ALLOCATION_COUNTER_H_
#define TARN_TOOLS_TARN_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace tarn_cli {

// Why there is no count, or nullptr if there is one: sanitizers bring their own malloc, and other C libraries than glibc have
// no second name for theirs.
const char* AllocationCounterMissing();

// Calls so far; 0 if there is no count.
uint64_t AllocationCount();

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_ALLOCATION_COUNTER_H_
