// The int8 layer of builds without an operating system, which are of one CPU: Helium (MVE), the DSP extension of Cortex-M, or plain
// loops, whichever the compiler was told to make code for.
#ifndef TARN_KERNELS_DENSE_INT8_BARE_H_
#define TARN_KERNELS_DENSE_INT8_BARE_H_

#include "kernels/kernels.h"

namespace tarn {

// "mve", "dsp" or "scalar".
extern const char kInt8BareName[];

// As Kernels::dense_qdu8_qc8w. Sums are exact; what comes after them runs in f32.
void DenseQdu8Qc8wBare(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                       const float* weight_scale, const float* bias, float* y, size_t y_stride);

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_INT8_BARE_H_
