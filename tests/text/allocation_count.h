// Counts operator new in the test binary: what an algorithm of the standard library would take its memory from.
#ifndef TARN_TESTS_TEXT_ALLOCATION_COUNT_H_
#define TARN_TESTS_TEXT_ALLOCATION_COUNT_H_

#include <cstdint>

namespace tarn {

// Calls of operator new so far.
uint64_t AllocationCount();

}  // namespace tarn

#endif  // TARN_TESTS_TEXT_ALLOCATION_COUNT_H_
