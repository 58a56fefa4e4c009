// Control by clustering (MATH 1.8.8), online and Lloyd's: the slot whose mean key is nearest takes the token. K~ is kept
// transposed, so that the distances of a vector of slots grow together.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/clustering_online.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/slot_controls/mean-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

HWY_INLINE VF AddSquare(VF k, VF mean, VF sum) {
  const VF difference = hn::Sub(k, mean);
  return hn::MulAdd(difference, difference, sum);
}

// distance[j] = |k - K~_j|^2. Equal means get equal sums, whatever lane they are in. Even and odd rows have sums of their own, so
// that an addition need not wait for the one before it.
HWY_INLINE void Distances(const float* k, const float* keys, size_t key_dim, size_t slots, float* distance) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t j = 0; j < slots; j += lanes) {
    const size_t count = slots - j;
    const float* mean = keys + j;
    VF even = hn::Zero(d), odd = even;
    size_t x = 0;
    for (; x + 2 <= key_dim; x += 2, mean += 2 * slots) {
      even = AddSquare(hn::Set(d, k[x]), hn::LoadN(d, mean, count), even);
      odd = AddSquare(hn::Set(d, k[x + 1]), hn::LoadN(d, mean + slots, count), odd);
    }
    if (x < key_dim) even = AddSquare(hn::Set(d, k[x]), hn::LoadN(d, mean, count), even);
    hn::StoreN(hn::Add(even, odd), d, distance + j, count);
  }
}

// argmin_j |k - K~_j|^2, the first of equals. `distance` [n] is scratch.
HWY_INLINE size_t Nearest(const float* k, const float* keys, size_t key_dim, size_t slots, float* distance) {
  Distances(k, keys, key_dim, slots, distance);
  size_t nearest = 0;
  float least = HUGE_VALF;
  for (size_t j = 0; j < slots; ++j) {
    if (distance[j] < least) {
      least = distance[j];
      nearest = j;
    }
  }
  return nearest;
}

// The first n tokens open the slots. Until the answer is known, `decay` holds the distances.
void ClusteringOnlineStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const bool opens = a.tokens_seen < a.slots;
  const size_t slot = opens ? static_cast<size_t>(a.tokens_seen) : Nearest(a.k, a.keys, a.key_dim, a.slots, decay);
  JoinSlot(a, slot, decay, write, bias);
}

// Where a token goes depends on where the one before it went.
bool ClusteringOnlineChunk(const SlotControlArgs&, float*, float*, float*, float*) { return false; }

void NearestSlot(const NearestSlotArgs& a) {
  for (size_t t = 0; t < a.tokens; ++t) {
    a.index[t] = static_cast<int32_t>(Nearest(a.k + t * a.k_stride, a.keys, a.key_dim, a.slots, a.scratch));
  }
}

void FillNearestSlot(Kernels& table) { table.nearest_slot = NearestSlot; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(ClusteringOnline)

HWY_EXPORT(FillNearestSlot);
void FillNearestSlot(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillNearestSlot)[TargetIndex(target)](table); }
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// Clustering (MATH 1.8.8): argmin |k - K~_j|^2, the first of equals.
size_t Nearest(const float* k, const float* keys, size_t key_dim, size_t slots) {
  size_t nearest = 0;
  double least = HUGE_VAL;
  for (size_t j = 0; j < slots; ++j) {
    double distance = 0.0;
    for (size_t x = 0; x < key_dim; ++x) {
      const double difference = static_cast<double>(k[x]) - keys[x * slots + j];
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      nearest = j;
    }
  }
  return nearest;
}

}  // namespace

// The first n tokens open the slots.
void ClusteringOnlineStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  JoinSlot(a, a.tokens_seen < a.slots ? a.tokens_seen : Nearest(a.k, a.keys, a.key_dim, a.slots), decay, write, bias);
}

// Where a token goes depends on where the one before it went.
bool ClusteringOnlineChunk(const SlotControlArgs&, float*, float*, float*, float*) { return false; }

void NearestSlot(const NearestSlotArgs& a) {
  for (size_t t = 0; t < a.tokens; ++t) {
    a.index[t] = static_cast<int32_t>(Nearest(a.k + t * a.k_stride, a.keys, a.key_dim, a.slots));
  }
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
