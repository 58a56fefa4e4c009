// Linear state, delta rule and cache. A step takes the states of all heads and layers in turn, as a token does: what is measured is
// the level of memory in which they lie.
#include <cmath>

#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

void LinearStep(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t dv = model.head_dim, states = kHeads * model.layers, elements = kFeatures * dv;
  Floats s(states * elements), z(states * kFeatures), o(dv);
  const Floats phi_q = Numbers(kFeatures, 0, 1), phi_k = Numbers(kFeatures, 0, 1), v = Numbers(dv);
  Measure(state, 1, 2 * sizeof(float) * (elements + kFeatures), [&](size_t i) {
    const LinearStepArgs step = {1,
                                 kFeatures,
                                 dv,
                                 phi_q.data(),
                                 phi_k.data(),
                                 v.data(),
                                 0.9f,
                                 nullptr,
                                 0.1f,
                                 DenMode::kClampMin,
                                 1e-3f,
                                 1.0f,
                                 s.data() + i % states * elements,
                                 z.data() + i % states * kFeatures,
                                 o.data()};
    kernels.linear_steps(1, &step);
  });
}

void LinearChunk(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t dv = model.head_dim, width = model.width;
  Floats s(kFeatures * dv), z(kFeatures), o(kChunk * width);
  const Floats phi_q = Numbers(kChunk * kFeatures, 0, 1), phi_k = Numbers(kChunk * kFeatures, 0, 1), v = Numbers(kChunk * width);
  const Floats log_decay(kChunk, std::log(0.9f)), write(kChunk, 0.1f);
  Floats scratch(LinearChunkScratch(kChunk, kFeatures, dv));
  Measure(state, kChunk, sizeof(float) * (2 * (s.size() + z.size()) + 2 * kChunk * (kFeatures + dv)), [&](size_t) {
    kernels.linear_chunk({kChunk, 1, kFeatures, dv, phi_q.data(), phi_k.data(), v.data(), width, log_decay.data(), write.data(),
                          DenMode::kClampMin, 1e-3f, 1.0f, s.data(), z.data(), o.data(), width, scratch.data()});
  });
}

// Keys of length 1, as the systems of the delta rule have them: with longer ones the state would grow.
Floats UnitKeys(size_t rows) { return Numbers(rows * kFeatures, 0, 1.0f / std::sqrt(static_cast<float>(kFeatures))); }

void DeltaStep(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t dv = model.head_dim, states = kHeads * model.layers, elements = kFeatures * dv;
  Floats s(states * elements), o(dv), scratch(dv);
  const Floats phi = UnitKeys(1), v = Numbers(dv);
  Measure(state, 1, 2 * sizeof(float) * elements, [&](size_t i) {
    kernels.delta_step({1, kFeatures, dv, phi.data(), phi.data(), v.data(), 1.0f, nullptr, 0.5f, 0.0f, 1.0f, false,
                        s.data() + i % states * elements, nullptr, o.data(), scratch.data()});
  });
}

void DeltaChunk(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t dv = model.head_dim, width = model.width;
  Floats s(kFeatures * dv), o(kChunk * width), scratch(DeltaChunkScratch(kChunk, kFeatures, dv));
  const Floats phi = UnitKeys(kChunk), v = Numbers(kChunk * width), beta(kChunk, 0.5f);
  Measure(state, kChunk, sizeof(float) * 2 * (s.size() + kChunk * (kFeatures + dv)), [&](size_t) {
    kernels.delta_chunk({kChunk, 1, kFeatures, dv, phi.data(), phi.data(), v.data(), width, nullptr, beta.data(), 1.0f, s.data(),
                         o.data(), width, scratch.data()});
  });
}

struct CacheType {
  const char* name;
  RowType type;
  size_t bytes;
};
constexpr CacheType kCacheTypes[] = {{"f32", RowType::kF32, 4}, {"f16", RowType::kF16, 2}, {"i8", RowType::kI8, 1}};

// All bytes 0: rows of zeros in every type.
void CacheAttend(benchmark::State& state, const Kernels& kernels, const BenchModel& model, const CacheType& type, size_t tokens) {
  constexpr size_t kRows = 1024;
  const size_t d = model.head_dim;
  const std::vector<uint8_t> keys(kRows * d * type.bytes), values(kRows * d * type.bytes);
  const Floats scales(kRows, 0.01f), q = Numbers(tokens * d);
  Floats o(tokens * d), scratch(CacheScratch(tokens, 1, d, d));
  const CacheBlock block{kRows, type.type, keys.data(), d, values.data(), d, scales.data(), scales.data(), -kAlways, kAlways, 0};
  Measure(state, tokens, keys.size() + values.size(), [&](size_t) {
    kernels.cache_attend({tokens, 1, d, d, q.data(), d, &block, 1, 0.125f, o.data(), d, scratch.data()});
  });
}

}  // namespace

void AddAttention(const Kernels& kernels) {
  using Kernel = void (*)(benchmark::State&, const Kernels&, const BenchModel&);
  constexpr std::pair<const char*, Kernel> kKernels[] = {
      {"linear_step", LinearStep}, {"linear_chunk", LinearChunk}, {"delta_step", DeltaStep}, {"delta_chunk", DeltaChunk}};
  for (const BenchModel& model : kModels) {
    for (const auto& [name, kernel] : kKernels) {
      Add(std::string(name) + "/" + model.name,
          [&kernels, &model, f = kernel](benchmark::State& state) { f(state, kernels, model); });
    }
    for (const CacheType& type : kCacheTypes) {
      for (const size_t tokens : {size_t{1}, kChunk}) {
        Add(std::string("cache_attend/") + model.name + "/" + type.name + "/tokens:" + std::to_string(tokens),
            [&kernels, &model, &type, tokens](benchmark::State& state) { CacheAttend(state, kernels, model, type, tokens); });
      }
    }
  }
}

}  // namespace tarn::bench
