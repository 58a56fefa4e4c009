// Nearest codes by Hamming distance (MATH 1.9.1): a vector of codes looks at one center after the other.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/hamming.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DU = hn::ScalableTag<uint64_t>;
using VU = hn::Vec<DU>;

// Distances are below 2^7 and center numbers below 2^32: one lane holds both, the distance above the number. The least of them is
// the nearest center, and of equally near ones the first.
HWY_INLINE VU Nearest(DU d, VU code, size_t center_count, const uint64_t* centers) {
  VU best = hn::Set(d, ~uint64_t{0});
  for (size_t j = 0; j < center_count; ++j) {
    const VU distance = hn::PopulationCount(hn::Xor(code, hn::Set(d, centers[j])));
    best = hn::Min(best, hn::Or(hn::ShiftLeft<32>(distance), hn::Set(d, static_cast<uint64_t>(j))));
  }
  return best;
}

void NearestCode(size_t n, const uint64_t* codes, size_t center_count, const uint64_t* centers, uint32_t* nearest) {
  const DU d;
  const hn::Rebind<uint32_t, DU> d32;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::TruncateTo(d32, Nearest(d, hn::LoadU(d, codes + i), center_count, centers)), d32, nearest + i);
  }
  if (i < n) {
    const VU best = Nearest(d, hn::LoadN(d, codes + i, n - i), center_count, centers);
    hn::StoreN(hn::TruncateTo(d32, best), d32, nearest + i, n - i);
  }
}

void FillHamming(Kernels& table) { table.nearest_code = NearestCode; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillHamming);
void FillHamming(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillHamming)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
