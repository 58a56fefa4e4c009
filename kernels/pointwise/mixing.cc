// Rows that are mixed elementwise: a skip of the values past attention, and two rows mixed by a sigmoid. Equations:
// kernels/mixing.h.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/mixing.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// sum_i w_i q_i k_i
HWY_INLINE float WeighedDot(size_t n, const float* w, const float* q, const float* k) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF sum = hn::Zero(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t left = n - i;
    sum = hn::MulAdd(hn::Mul(hn::LoadN(d, w + i, left), hn::LoadN(d, q + i, left)), hn::LoadN(d, k + i, left), sum);
  }
  return hn::ReduceSum(d, sum);
}

void Skip(const SkipArgs& a) {
  for (size_t row = 0; row < a.rows; ++row) {
    for (size_t h = 0; h < a.heads; ++h) {
      const size_t key = h * a.key_dim, value = h * a.value_dim;
      const float c = a.q == nullptr
                          ? a.weight[h]
                          : WeighedDot(a.key_dim, a.weight + key, a.q + row * a.q_stride + key, a.k + row * a.k_stride + key);
      Map2(a.value_dim, a.o + row * a.o_stride + value, a.v + row * a.v_stride + value, a.y + row * a.y_stride + value,
           [c](DF d, VF o, VF v) HWY_ATTR { return hn::MulAdd(hn::Set(d, c), v, o); });
    }
  }
}

void Blend(const BlendArgs& a) {
  const DF d;
  const size_t lanes = hn::Lanes(d), n = a.width;
  for (size_t row = 0; row < a.rows; ++row) {
    const float *x = a.x + row * a.x_stride, *logits = a.logits + row * a.logits_stride;
    const float* z = a.z == nullptr ? nullptr : a.z + row * a.z_stride;
    float* y = a.y + row * a.y_stride;
    for (size_t i = 0; i < n; i += lanes) {
      const size_t left = n - i;
      VF part = Sigmoid(d, hn::Neg(hn::LoadN(d, logits + i, left)));
      if (a.weight != nullptr) part = hn::Mul(part, hn::LoadN(d, a.weight + i, left));
      const VF from = hn::LoadN(d, x + i, left), to = z == nullptr ? hn::Zero(d) : hn::LoadN(d, z + i, left);
      hn::StoreN(hn::MulAdd(part, hn::Sub(to, from), from), d, y + i, left);
    }
  }
}

void FillMixing(Kernels& table) {
  table.skip = Skip;
  table.blend = Blend;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillMixing);
void FillMixing(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillMixing)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
