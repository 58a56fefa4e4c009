// Feature maps, for the two rows of a decode step (q and k of a head) and for those of a chunk. A step takes the projections of all
// heads and layers in turn.
#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

void Features(benchmark::State& state, const Kernels& kernels, const BenchModel& model, size_t map, size_t rows) {
  const bool projects = kFeatureMaps[map].projection != Projection::kNone;
  const size_t d = model.head_dim, heads = kHeads * model.layers, count = projects ? kProjections : 0;
  const Floats x = Numbers(rows * d), weight = Numbers(heads * d * count), bias = Numbers(count);
  Floats phi(rows * kFeatureMaps[map].features({d, count, /*nu=*/1})), log_weight(rows);
  Measure(state, rows, sizeof(float) * (x.size() + d * count + phi.size()), [&](size_t i) {
    const float* head = projects ? weight.data() + i % heads * d * count : nullptr;
    kernels.features[map]({rows, d, count, x.data(), head, bias.data(), 1.0f, 1e-3f, 1, false, phi.data(), log_weight.data()});
  });
}

}  // namespace

void AddFeatures(const Kernels& kernels) {
  for (const BenchModel& model : kModels) {
    for (size_t map = 0; map < kFeatureMapCount; ++map) {
      for (const size_t rows : {size_t{2}, 2 * kChunk}) {
        Add(std::string("features/") + kFeatureMaps[map].name + "/" + model.name + "/rows:" + std::to_string(rows),
            [&kernels, &model, map, rows](benchmark::State& state) { Features(state, kernels, model, map, rows); });
      }
    }
  }
}

}  // namespace tarn::bench
