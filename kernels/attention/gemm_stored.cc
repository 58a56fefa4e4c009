// The matrix product for a B in any of the types that states are stored in: once for all kernels that read them.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/gemm_stored.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE void GemmOfType(const GemmStoredArgs& g) {
  GemmAll<T>(
      {g.m, g.n, g.k, g.a, g.a_row, g.a_col, static_cast<const T*>(g.b.data), g.b_row, g.accumulate, g.c, g.c_row, g.b.scales});
}

void GemmStored(const GemmStoredArgs& g) {
  switch (g.b.type) {
    case RowType::kF32:
      return GemmOfType<float>(g);
    case RowType::kF16:
      return GemmOfType<uint16_t>(g);
    case RowType::kI8:
      return GemmOfType<int8_t>(g);
  }
}

// Products of many rows read B fewer times: so the smaller of R and G is the loop around them.
void GemmOfQueries(const GemmOfQueriesArgs& q) {
  if (q.rows > q.queries) {
    for (size_t g = 0; g < q.queries; ++g) {
      GemmStored({q.rows, q.n, q.k, q.a + g * q.a_query, q.a_row, 1, q.b, q.n, false, q.c + g * q.c_query, q.c_row});
    }
  } else {
    for (size_t r = 0; r < q.rows; ++r) {
      GemmStored({q.queries, q.n, q.k, q.a + r * q.a_row, q.a_query, 1, q.b, q.n, false, q.c + r * q.c_row, q.c_query});
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
