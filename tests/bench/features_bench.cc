// Feature maps, for the two rows of a decode step (q and k of a head) and for those of a chunk. A step takes the projections of all
// heads and layers in turn.
#include <iterator>

#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

struct Map {
  const char* name;
  FeatureMap map;
  bool projects;
  size_t per_input;  // features per projection, or per element of x
};
constexpr Map kMaps[] = {{"gaussian", FeatureMap::kGaussian, true, 2},
                         {"arccos", FeatureMap::kArccos, true, 1},
                         {"elu_plus_one", FeatureMap::kEluPlusOne, false, 1},
                         {"positive", FeatureMap::kPositive, true, 1},
                         {"relu", FeatureMap::kRelu, true, 1},
                         {"dpfp", FeatureMap::kDpfp, false, 2},
                         {"mlp_relu", FeatureMap::kMlpRelu, true, 1},
                         {"identity", FeatureMap::kIdentity, false, 1}};
static_assert(std::size(kMaps) == kFeatureMapCount);

void Features(benchmark::State& state, const Kernels& kernels, const BenchModel& model, const Map& map, size_t rows) {
  const size_t d = model.head_dim, heads = kHeads * model.layers, count = map.projects ? kProjections : 0;
  const Floats x = Numbers(rows * d), weight = Numbers(heads * d * count), bias = Numbers(count);
  Floats phi(rows * map.per_input * (map.projects ? count : d)), log_weight(rows);
  Measure(state, rows, sizeof(float) * (x.size() + d * count + phi.size()), [&](size_t i) {
    const float* head = map.projects ? weight.data() + i % heads * d * count : nullptr;
    kernels.features[static_cast<size_t>(map.map)](
        {rows, d, count, x.data(), head, bias.data(), 1.0f, 1e-3f, 1, false, phi.data(), log_weight.data()});
  });
}

}  // namespace

void AddFeatures(const Kernels& kernels) {
  for (const BenchModel& model : kModels) {
    for (const Map& map : kMaps) {
      for (const size_t rows : {size_t{2}, 2 * kChunk}) {
        Add(std::string("features/") + map.name + "/" + model.name + "/rows:" + std::to_string(rows),
            [&kernels, &model, &map, rows](benchmark::State& state) { Features(state, kernels, model, map, rows); });
      }
    }
  }
}

}  // namespace tarn::bench
