// What the micro-benchmarks share. Each file registers the benchmarks of one directory of kernels, at the shapes of the bench
// models: lm-small (8 heads of 64, width 512) and lm-big (8 heads of 128, width 1024), both with 128 features or 32 slots and
// chunks of 64.
#ifndef TARN_TESTS_BENCH_BENCH_H_
#define TARN_TESTS_BENCH_BENCH_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.h"

namespace tarn::bench {

constexpr size_t kChunk = 64;
constexpr size_t kFeatures = 128;  // M of 64 random Fourier projections
constexpr size_t kProjections = 64;
constexpr size_t kSlots = 32;
constexpr size_t kHeads = 8;

struct BenchModel {
  const char* name;
  size_t width;
  size_t head_dim;
  size_t inner;
  size_t layers;
  size_t vocab;
};
constexpr BenchModel kModels[] = {{"lm-small", 512, 64, 2048, 6, 32768}, {"lm-big", 1024, 128, 4096, 16, 32000}};

using Floats = std::vector<float>;

// A fixed sequence in [low, high).
inline Floats Numbers(size_t count, float low = -1.0f, float high = 1.0f) {
  Floats numbers(count);
  uint32_t x = 1;
  for (float& number : numbers) {
    x = x * 1664525u + 1013904223u;
    number = low + (high - low) * static_cast<float>(x >> 8) * 0x1p-24f;
  }
  return numbers;
}

// What one iteration does: tokens (or rows) made, and bytes that it must at least move.
inline void SetRates(benchmark::State& state, size_t items, size_t bytes) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * items));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

// run(i) for iteration i.
template <typename F>
void Measure(benchmark::State& state, size_t items, size_t bytes, const F& run) {
  size_t i = 0;
  for (auto _ : state) {
    run(i++);
    benchmark::ClobberMemory();
  }
  SetRates(state, items, bytes);
}

template <typename F>
void Add(const std::string& name, F f) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(f));
}

void AddAttention(const Kernels& kernels);
void AddSlots(const Kernels& kernels);
void AddNoncausal(const Kernels& kernels);
void AddFeatures(const Kernels& kernels);
void AddPointwise(const Kernels& kernels);
void AddDense(const Kernels& kernels);

}  // namespace tarn::bench

#endif  // TARN_TESTS_BENCH_BENCH_H_
