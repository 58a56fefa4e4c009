#include "runtime/ops/attention/cache/query_clusters.h"

#include <algorithm>

namespace tarn {
namespace {

void Start(const ClusterRules& rules, size_t queries, const int32_t* starts, const QueryClusters& clusters) {
  for (size_t c = 0; c < rules.clusters; ++c) {
    size_t query = static_cast<size_t>(uint64_t{c} * queries / rules.clusters);
    if (starts != nullptr) query = std::min(static_cast<size_t>(std::max<int32_t>(starts[c], 0)), queries - 1);
    clusters.centers[c] = clusters.codes[query];
  }
}

// Lists the members of every cluster: a counting sort.
void ListMembers(const ClusterRules& rules, size_t queries, const QueryClusters& clusters) {
  std::fill(clusters.begins, clusters.begins + rules.clusters + 1, 0u);
  for (size_t i = 0; i < queries; ++i) ++clusters.begins[clusters.nearest[i] + 1];
  for (size_t c = 0; c < rules.clusters; ++c) clusters.begins[c + 1] += clusters.begins[c];
  // Each begin moves to the end of its cluster, which is where the next one begins.
  for (size_t i = 0; i < queries; ++i) clusters.members[clusters.begins[clusters.nearest[i]]++] = static_cast<uint32_t>(i);
  for (size_t c = rules.clusters; c > 0; --c) clusters.begins[c] = clusters.begins[c - 1];
  clusters.begins[0] = 0;
}

uint64_t MajorityCode(const ClusterRules& rules, size_t cluster, const QueryClusters& clusters) {
  uint32_t counts[64] = {};
  for (uint32_t m = clusters.begins[cluster]; m < clusters.begins[cluster + 1]; ++m) {
    const uint64_t code = clusters.codes[clusters.members[m]];
    for (size_t b = 0; b < rules.bits; ++b) counts[b] += static_cast<uint32_t>(code >> b & 1);
  }
  uint64_t majority = 0;
  for (size_t b = 0; b < rules.bits; ++b) majority |= uint64_t{2 * uint64_t{counts[b]} > clusters.size(cluster)} << b;
  return majority;
}

}  // namespace

uint64_t HashCode(size_t bits, const float* projections, const float* thresholds, size_t threshold_stride) {
  uint64_t code = 0;
  for (size_t b = 0; b < bits; ++b) code |= uint64_t{projections[b] > thresholds[b * threshold_stride]} << b;
  return code;
}

void FormClusters(const Kernels& kernels, const ClusterRules& rules, size_t queries, const int32_t* starts,
                  const QueryClusters& clusters, const Cancellation* cancellation) {
  Start(rules, queries, starts, clusters);
  for (size_t i = 0; i < rules.iterations; ++i) {
    if (cancellation != nullptr && cancellation->requested()) return;
    if (i > 0) {
      for (size_t c = 0; c < rules.clusters; ++c) {
        if (clusters.size(c) > 0) clusters.centers[c] = MajorityCode(rules, c, clusters);
      }
    }
    kernels.nearest_code(queries, clusters.codes, rules.clusters, clusters.centers, clusters.nearest);
    ListMembers(rules, queries, clusters);
  }
}

}  // namespace tarn
