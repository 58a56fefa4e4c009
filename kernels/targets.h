// The instruction sets that the Highway sources of this folder are compiled for. Comes before every other header of Highway.
//
// Each target costs compile time and size, so those that would run the same instructions as another are left out: our kernels use
// no AES (NEON needs no more than NEON_WITHOUT_AES), no 16-bit floating point and no bit tricks, and the fixed-length variants of
// SVE differ only in code size. NEON_BF16 would bring dot products of bytes, but only to cores that also have bf16, and those of
// Arm have SVE2, which has them too; the many with dot products alone (A55, A76) it would not reach. Of AVX-512, AVX3_DL (Ice Lake,
// Zen 4) is the one: its VNNI sums products of bytes, which quantized layers are made of, and its successors add nothing to that.
// Older AVX-512 CPUs take AVX2, which their clock favours anyway.
#ifndef TARN_KERNELS_TARGETS_H_
#define TARN_KERNELS_TARGETS_H_

#ifdef HWY_TARGETS
#error "kernels/targets.h must come before Highway's headers: each file would have targets of its own"
#endif

#ifndef HWY_DISABLED_TARGETS
#define HWY_WANT_AVX3_DL  // Highway compiles it only on request
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_NEON | HWY_NEON_BF16 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#include "hwy/targets.h"

#endif  // TARN_KERNELS_TARGETS_H_
