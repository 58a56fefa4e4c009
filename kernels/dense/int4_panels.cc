// Int4 layers in panels: the ways in which CPUs multiply bytes. A way is that of one of Highway's targets, or, where a target lacks
// an instruction that many of its CPUs have, one with attributes of its own, which is chosen by what the CPU says.
#include "kernels/dense/int4_panels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/int4_panels.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

// Functions of a way, the lambdas in them too, which attributes of a region do not reach.
#undef TARN_INT4_INLINE
#define TARN_INT4_INLINE HWY_INLINE
#undef TARN_INT4_LAMBDA
#define TARN_INT4_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// SVE has no arrays of vectors, and its CPUs multiply bytes as fast with NEON: their tables take NEON's panels.
#if (HWY_ARCH_X86 || HWY_ARCH_ARM) && !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
#define TARN_HAVE_INT4_PANELS 1
#else
#undef TARN_HAVE_INT4_PANELS
#endif

#if defined(TARN_HAVE_INT4_PANELS)

using DI32 = hn::ScalableTag<int32_t>;
using VI32 = hn::Vec<DI32>;
using DI16 = hn::Repartition<int16_t, DI32>;
using DI8 = hn::Repartition<int8_t, DI32>;
using VI8 = hn::Vec<DI8>;
using DU8 = hn::RebindToUnsigned<DI8>;
using VU8 = hn::Vec<DU8>;

HWY_INLINE VF LoadBf16(const uint16_t* from) {
  const hn::RebindToUnsigned<DI32> d;
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, decltype(d)>(), from))));
}

// Four elements of x for every output of a vector.
HWY_INLINE VI8 LoadFour(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof(four));
  return hn::BitCast(DI8(), hn::Set(DI32(), four));
}

#endif

#if defined(TARN_HAVE_INT4_PANELS) && HWY_ARCH_X86

// x86 multiplies unsigned bytes, nibbles, with signed ones, x.
struct UnsignedNibbles {
  static constexpr uint8_t kFlip = 0;
  static constexpr float kUnit = 1.0f;
  using Nibbles = VU8;
  using X = const int8_t*;
  static HWY_INLINE X LoadX(const int8_t* q) { return q; }
  static HWY_INLINE void Unpack(const uint8_t* from, Nibbles& low, Nibbles& high) {
    const DU8 d;
    const hn::RepartitionToWide<DU8> wide;
    const VU8 both = hn::LoadU(d, from), mask = hn::Set(d, uint8_t{15});
    low = hn::And(both, mask);
    high = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(wide, both))), mask);
  }
};

#if HWY_TARGET <= HWY_AVX3_DL

namespace vnni {
struct Way : UnsignedNibbles {
  static constexpr const char* kName = "AVX-512 VNNI";
  static constexpr size_t kVectors = 1, kRows = 8;
  using Sums = VI32;
  static HWY_INLINE Sums Start(int32_t offset) { return hn::Set(DI32(), offset); }
  template <size_t g>
  static HWY_INLINE void Add(X q, Nibbles low, Nibbles high, Sums& sums) {
    sums = hn::SumOfMulQuadAccumulate(DI32(), low, LoadFour(q + 4 * g), sums);
    sums = hn::SumOfMulQuadAccumulate(DI32(), high, LoadFour(q + kI4Block / 2 + 4 * g), sums);
  }
  static HWY_INLINE VF Finish(Sums sums, int32_t) { return hn::ConvertTo(DF(), sums); }
};
#include "kernels/dense/int4_panels_tile-inl.h"
}  // namespace vnni

size_t FindPanels(const Int4Panels** found) {
  found[0] = &vnni::kPanels;
  return 1;
}

#else

namespace pairs {
// Sums of a block fit i16: 8 * 2 * 15 * 128 < 2^15.
struct Way : UnsignedNibbles {
  static constexpr const char* kName = HWY_TARGET == HWY_AVX2 ? "AVX2" : HWY_TARGET == HWY_SSE4 ? "SSE4" : "SSE2";
  static constexpr size_t kVectors = 2, kRows = 2;
  using Sums = hn::Vec<DI16>;
  static HWY_INLINE Sums Start(int32_t) { return hn::Zero(DI16()); }
  template <size_t g>
  static HWY_INLINE void Add(X q, Nibbles low, Nibbles high, Sums& sums) {
    sums = hn::Add(sums, hn::SatWidenMulPairwiseAdd(DI16(), low, LoadFour(q + 4 * g)));
    sums = hn::Add(sums, hn::SatWidenMulPairwiseAdd(DI16(), high, LoadFour(q + kI4Block / 2 + 4 * g)));
  }
  static HWY_INLINE VF Finish(Sums sums, int32_t offset) {
    const DI32 d;
    const VI32 whole = hn::WidenMulPairwiseAdd(d, sums, hn::Set(DI16(), int16_t{1}));
    return hn::ConvertTo(DF(), hn::Add(whole, hn::Set(d, offset)));
  }
};
#include "kernels/dense/int4_panels_tile-inl.h"
}  // namespace pairs

#endif
#endif  // x86

#if defined(TARN_HAVE_INT4_PANELS) && HWY_ARCH_ARM

namespace pairs {
// NEON of any CPU: products of signed bytes in i16. A lane takes 8 of a block, and they are paired once: 2 * 8 * 8 * 128 < 2^15.
struct Way {
  static constexpr const char* kName = "NEON";
  static constexpr uint8_t kFlip = 0x88;
  static constexpr float kUnit = 1.0f;
  static constexpr size_t kVectors = 2, kRows = HWY_ARCH_ARM_A64 ? 4 : 2;
  using Nibbles = VI8;
  using X = const int8_t*;
  struct Sums {
    int16x8_t first, second;  // of two outputs each, four sums an output
  };
  static HWY_INLINE X LoadX(const int8_t* q) { return q; }
  static HWY_INLINE void Unpack(const uint8_t* from, Nibbles& low, Nibbles& high) {
    const VI8 both = hn::BitCast(DI8(), hn::LoadU(DU8(), from));
    low = hn::ShiftRight<4>(hn::ShiftLeft<4>(both));
    high = hn::ShiftRight<4>(both);
  }
  static HWY_INLINE Sums Start(int32_t) { return {vdupq_n_s16(0), vdupq_n_s16(0)}; }
  template <size_t g>
  static HWY_INLINE void Add(X q, Nibbles low, Nibbles high, Sums& sums) {
    const int8x8_t x_low = vget_low_s8(LoadFour(q + 4 * g).raw), x_high = vget_low_s8(LoadFour(q + kI4Block / 2 + 4 * g).raw);
    sums.first = vmlal_s8(sums.first, vget_low_s8(low.raw), x_low);
    sums.second = vmlal_s8(sums.second, vget_high_s8(low.raw), x_low);
    sums.first = vmlal_s8(sums.first, vget_low_s8(high.raw), x_high);
    sums.second = vmlal_s8(sums.second, vget_high_s8(high.raw), x_high);
  }
  static HWY_INLINE VF Finish(const Sums& sums, int32_t) {
#if HWY_ARCH_ARM_A64
    const int16x8_t pairs = vpaddq_s16(sums.first, sums.second);
#else
    const int16x8_t pairs = vcombine_s16(vpadd_s16(vget_low_s16(sums.first), vget_high_s16(sums.first)),
                                         vpadd_s16(vget_low_s16(sums.second), vget_high_s16(sums.second)));
#endif
    return hn::ConvertTo(DF(), VI32(vpaddlq_s16(pairs)));
  }
};
#include "kernels/dense/int4_panels_tile-inl.h"
}  // namespace pairs

#endif  // ARM

#if !defined(TARN_HAVE_INT4_PANELS)
size_t FindPanels(const Int4Panels**) { return 0; }
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

// ---- Ways with attributes of their own ----

#if defined(TARN_HAVE_INT4_PANELS) && HWY_TARGET == HWY_AVX2

#undef TARN_INT4_LAMBDA
#define TARN_INT4_LAMBDA __attribute__((always_inline, target(HWY_TARGET_STR ",avxvnni")))
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avxvnni")
namespace tarn {
namespace HWY_NAMESPACE {
namespace vex {
struct Way : UnsignedNibbles {
  static constexpr const char* kName = "AVX-VNNI";
  static constexpr size_t kVectors = 2, kRows = 4;
  using Sums = VI32;
  static HWY_INLINE Sums Start(int32_t offset) { return hn::Set(DI32(), offset); }
  template <size_t g>
  static HWY_INLINE void Add(X q, Nibbles low, Nibbles high, Sums& sums) {
    sums = VI32{_mm256_dpbusd_avx_epi32(sums.raw, low.raw, LoadFour(q + 4 * g).raw)};
    sums = VI32{_mm256_dpbusd_avx_epi32(sums.raw, high.raw, LoadFour(q + kI4Block / 2 + 4 * g).raw)};
  }
  static HWY_INLINE VF Finish(Sums sums, int32_t) { return hn::ConvertTo(DF(), sums); }
};
#include "kernels/dense/int4_panels_tile-inl.h"
}  // namespace vex
}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_POP_ATTRIBUTES

// The same in the encoding of AVX-512, for the CPUs that have its VNNI and not all that AVX3_DL asks for (Cascade Lake).
#undef TARN_INT4_LAMBDA
#define TARN_INT4_LAMBDA __attribute__((always_inline, target(HWY_TARGET_STR ",avx512f,avx512vl,avx512vnni")))
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512f,avx512vl,avx512vnni")
namespace tarn {
namespace HWY_NAMESPACE {
namespace evex {
struct Way : UnsignedNibbles {
  static constexpr const char* kName = "AVX-512 VNNI, 256 bits";
  static constexpr size_t kVectors = 2, kRows = 4;
  using Sums = VI32;
  static HWY_INLINE Sums Start(int32_t offset) { return hn::Set(DI32(), offset); }
  template <size_t g>
  static HWY_INLINE void Add(X q, Nibbles low, Nibbles high, Sums& sums) {
    sums = VI32{_mm256_dpbusd_epi32(sums.raw, low.raw, LoadFour(q + 4 * g).raw)};
    sums = VI32{_mm256_dpbusd_epi32(sums.raw, high.raw, LoadFour(q + kI4Block / 2 + 4 * g).raw)};
  }
  static HWY_INLINE VF Finish(Sums sums, int32_t) { return hn::ConvertTo(DF(), sums); }
};
#include "kernels/dense/int4_panels_tile-inl.h"
}  // namespace evex

size_t FindPanels(const Int4Panels** found) {
  size_t count = 0;
  if (__builtin_cpu_supports("avxvnni")) found[count++] = &vex::kPanels;
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) found[count++] = &evex::kPanels;
  found[count++] = &pairs::kPanels;
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_POP_ATTRIBUTES

#elif defined(TARN_HAVE_INT4_PANELS) && HWY_ARCH_ARM_A64

#undef TARN_INT4_LAMBDA
#define TARN_INT4_LAMBDA __attribute__((always_inline, target("+dotprod")))
HWY_PUSH_ATTRIBUTES("+dotprod")
namespace tarn {
namespace HWY_NAMESPACE {
namespace dotprod {
// Nibbles stay 16 times what they are, which saves a shift.
struct Way {
  static constexpr const char* kName = "NEON dot products";
  static constexpr uint8_t kFlip = 0x88;
  static constexpr float kUnit = 16.0f;
  static constexpr size_t kVectors = 2, kRows = 4;
  using Nibbles = int8x16_t;
  struct X {
    int8x16_t low, high;
  };
  using Sums = int32x4_t;
  static HWY_INLINE X LoadX(const int8_t* q) { return {vld1q_s8(q), vld1q_s8(q + 16)}; }
  static HWY_INLINE void Unpack(const uint8_t* from, Nibbles& low, Nibbles& high) {
    const int8x16_t both = vreinterpretq_s8_u8(vld1q_u8(from));
    low = vshlq_n_s8(both, 4);
    high = vandq_s8(both, vdupq_n_s8(static_cast<int8_t>(0xF0)));
  }
  static HWY_INLINE Sums Start(int32_t) { return vdupq_n_s32(0); }
  template <size_t g>
  static HWY_INLINE void Add(const X& x, Nibbles low, Nibbles high, Sums& sums) {
    sums = vdotq_laneq_s32(sums, low, x.low, g);
    sums = vdotq_laneq_s32(sums, high, x.high, g);
  }
  static HWY_INLINE VF Finish(Sums sums, int32_t) { return hn::ConvertTo(DF(), VI32(sums)); }
};
#include "kernels/dense/int4_panels_tile-inl.h"
}  // namespace dotprod

size_t FindPanels(const Int4Panels** found) {
  size_t count = 0;
#if defined(__linux__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP
  if ((getauxval(AT_HWCAP) & kAsimdDp) != 0) found[count++] = &dotprod::kPanels;
#endif
  found[count++] = &pairs::kPanels;
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_POP_ATTRIBUTES

#elif defined(TARN_HAVE_INT4_PANELS) && HWY_TARGET > HWY_AVX3_DL

namespace tarn {
namespace HWY_NAMESPACE {
size_t FindPanels(const Int4Panels** found) {
  found[0] = &pairs::kPanels;
  return 1;
}
}  // namespace HWY_NAMESPACE
}  // namespace tarn

#endif

#if HWY_ONCE

namespace tarn {
HWY_EXPORT(FindPanels);
namespace {

constexpr size_t kMostWays = 3;

size_t FindPanelsFor(int64_t target, const Int4Panels** found) {
#if HWY_ARCH_ARM_A64
  if ((target & HWY_ALL_SVE) != 0 && (HWY_TARGETS & HWY_NEON_WITHOUT_AES) != 0) target = HWY_NEON_WITHOUT_AES;
#endif
  return HWY_DISPATCH_TABLE(FindPanels)[TargetIndex(target)](found);
}

}  // namespace

void FillInt4Panels(int64_t target, Kernels& table) {
  const Int4Panels* found[kMostWays];
  if (FindPanelsFor(target, found) != 0) table.int4_panels = found[0];
}

Span<const Int4Panels* const> AllInt4Panels() {
  struct All {
    All() {
      for (int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
        const Int4Panels* found[kMostWays];
        const size_t ways = FindPanelsFor(left & -left, found);
        for (size_t i = 0; i < ways; ++i) {
          if (std::find(panels, panels + count, found[i]) == panels + count) panels[count++] = found[i];
        }
      }
    }
    const Int4Panels* panels[kMostWays * 8];
    size_t count = 0;
  };
  static const All all;
  return {all.panels, all.count};
}

}  // namespace tarn
#endif
