// Groups of alike queries: k-means over hash codes, by Hamming distance (Vyas et al. 2020; MATH 1.9.1).
#ifndef TARN_RUNTIME_OPS_ATTENTION_CACHE_QUERY_CLUSTERS_H_
#define TARN_RUNTIME_OPS_ATTENTION_CACHE_QUERY_CLUSTERS_H_

#include "core/cancellation.h"
#include "kernels/kernels.h"

namespace tarn {

struct ClusterRules {
  size_t clusters;    // C
  size_t bits;        // 1 to 64
  size_t iterations;  // assignments; between them the centers move
};

// The clusters of one head's queries, in memory of the caller.
struct QueryClusters {
  uint64_t* codes;    // [queries]
  uint64_t* centers;  // [C]: codes
  uint32_t* nearest;  // [queries]: the cluster of each
  uint32_t* members;  // [queries]: their numbers, cluster after cluster, ascending
  uint32_t* begins;   // [C + 1]: cluster c has members[begins[c]] to members[begins[c + 1] - 1]

  size_t size(size_t cluster) const { return begins[cluster + 1] - begins[cluster]; }
};

// Bit i of a code: projections[i] > thresholds[i * threshold_stride].
uint64_t HashCode(size_t bits, const float* projections, const float* thresholds, size_t threshold_stride);

// Forms the clusters of `queries` codes. They start at the codes of `starts` [C], of which what is no query's number counts as the
// first or the last one; nullptr: cluster c starts at query floor(c * queries / C). A query joins the nearest center, of equally
// near ones the lowest. A center takes every bit that more than half of its members have; without members it stays. Stops between
// two iterations once `cancellation` (or nullptr) is requested: nothing may be read of the clusters then.
void FormClusters(const Kernels& kernels, const ClusterRules& rules, size_t queries, const int32_t* starts,
                  const QueryClusters& clusters, const Cancellation* cancellation = nullptr);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_QUERY_CLUSTERS_H_
