// Feature maps: a file here is one of them, with its scalar reference and its version for vectors, which builds for one CPU without
// an operating system leave out (TARN_SIMD=0). The list is in variants/feature_maps.h.
#ifndef TARN_KERNELS_FEATURES_FEATURES_H_
#define TARN_KERNELS_FEATURES_FEATURES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/linear_state.h"

#ifndef TARN_SIMD
#define TARN_SIMD 1
#endif

namespace tarn {

// NAMEFeaturesFor(target): the version for one bit of HWY_TARGETS.
#define TARN_DECLARE(id, ...)              \
  namespace reference {                    \
  void id##Features(const FeatureArgs& a); \
  }                                        \
  FeatureKernel id##FeaturesFor(int64_t target);
TARN_FEATURE_MAPS(TARN_DECLARE)
#undef TARN_DECLARE

#if TARN_SIMD
#define TARN_FEATURE_MAP(id) \
  HWY_EXPORT(id##Features);  \
  FeatureKernel id##FeaturesFor(int64_t target) { return HWY_DISPATCH_TABLE(id##Features)[TargetIndex(target)]; }
#else
#define HWY_ONCE 1
#define TARN_FEATURE_MAP(id)
#endif

// For the references, which count in f64.
namespace reference {

// w_j . x, with w_j the j-th column of the transposed projection.
inline double Project(const FeatureArgs& a, const float* x, size_t j) {
  double sum = 0.0;
  for (size_t i = 0; i < a.head_dim; ++i) sum += static_cast<double>(a.weight[i * a.projections + j]) * x[i];
  return sum;
}

inline double Rectified(double x) { return x < 0.0 ? 0.0 : x; }  // a NaN stays one

}  // namespace reference
}  // namespace tarn

#endif  // TARN_KERNELS_FEATURES_FEATURES_H_
