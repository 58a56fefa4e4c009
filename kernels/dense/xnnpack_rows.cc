#include "kernels/dense/xnnpack_rows.h"

#if defined(TARN_HAVE_XNNPACK)

#include <cpuinfo.h>

#include "kernels/dense/xnnpack_rows_panels.h"

namespace tarn {

// As XNNPACK chooses (its src/configs/hardware-config.c and gemm-config.c).
const RowKernel* FindRowKernel(DenseWeights type) {
#if defined(__x86_64__) && !defined(__ANDROID__)
  if (cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512bw() && cpuinfo_has_x86_avx512dq() && cpuinfo_has_x86_avx512vl() &&
      cpuinfo_has_x86_avx512vnni()) {
    // For the tiles of AMX, XNNPACK packs int8 in another order: panels of 64 outputs, in groups of 4 inputs.
    if (type == DenseWeights::kQC8W) return cpuinfo_has_x86_amx_int8() ? nullptr : &kVnniInt8Rows;
    return type == DenseWeights::kQB4W ? &kVnniInt4Rows : nullptr;
  }
#endif
#if defined(__x86_64__)
  if (type == DenseWeights::kQC8W) {
    // With AVX-512 XNNPACK packs 16 outputs; AVX-VNNI multiplies bytes of both signs by itself.
    const bool has_more = cpuinfo_has_x86_avx512f() || cpuinfo_has_x86_avxvnni();
    return cpuinfo_has_x86_avx2() && !has_more ? &kAvx2Int8Rows : nullptr;
  }
#endif
  if (type != DenseWeights::kQB4W) return nullptr;
#if defined(__x86_64__)
  return cpuinfo_has_x86_avx2() ? &kAvx2Int4Rows : nullptr;
#elif defined(__aarch64__)  // the kernels with dot products and with i8mm are as short as ours would be
  return cpuinfo_has_arm_neon_dot() || cpuinfo_has_arm_i8mm() ? nullptr : &kNeonInt4Rows;
#else
  return nullptr;
#endif
}

}  // namespace tarn

#endif  // TARN_HAVE_XNNPACK
