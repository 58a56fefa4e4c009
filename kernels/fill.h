// n times the same number. Memory sets its time, not the instruction set: there is one copy of it, not one per target.
#ifndef TARN_KERNELS_FILL_H_
#define TARN_KERNELS_FILL_H_

#include <algorithm>
#include <cstddef>

#include "hwy/base.h"

namespace tarn {

HWY_NOINLINE inline void Fill(size_t n, float x, float* to) { std::fill_n(to, n, x); }

}  // namespace tarn

#endif  // TARN_KERNELS_FILL_H_
