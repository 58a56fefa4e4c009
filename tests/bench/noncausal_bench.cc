// Memories of whole sequences: keys written in blocks, rows of queries read; scores of all keys.
#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

constexpr size_t kKeys = 512;  // of a source

// A block of keys into one memory.
void LinearWrite(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t d = model.head_dim, width = model.width;
  Floats memory(kFeatures * d), norm(kFeatures), scratch(kChunk * d);
  const Floats phi = Numbers(kChunk * kFeatures, 0, 1), v = Numbers(kChunk * width), write(kChunk, 0.5f);
  Measure(state, kChunk, sizeof(float) * (2 * kFeatures * d + kChunk * (kFeatures + d)), [&](size_t) {
    kernels.linear_write(
        {kChunk, kFeatures, d, phi.data(), v.data(), width, 0.5f, write.data(), memory.data(), norm.data(), scratch.data()});
  });
}

// As decoding does it: each iteration another head's memory of another layer, `rows` beams.
void LinearRead(benchmark::State& state, const Kernels& kernels, const BenchModel& model, size_t rows) {
  const size_t d = model.head_dim, memories = kHeads * model.layers, elements = kFeatures * d;
  Floats o(rows * d);
  const Floats memory = Numbers(memories * elements), norm(kFeatures, 1.0f), phi = Numbers(rows * kFeatures, 0, 1);
  Measure(state, rows, sizeof(float) * elements, [&](size_t i) {
    kernels.linear_read({rows, 1, kFeatures, d, phi.data(), memory.data() + i % memories * elements, norm.data(),
                         DenMode::kClampMin, 0.01f, 1.0f, o.data(), d});
  });
}

void SlotWrite(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t d = model.head_dim, width = model.width;
  Floats keys(kSlots * d), values(kSlots * d);
  const Floats k = Numbers(kChunk * width), v = Numbers(kChunk * width), carry(kSlots, 0.5f);
  const Floats weight = Numbers(kChunk * kSlots, 0, 1);
  Measure(state, kChunk, 4 * sizeof(float) * (kSlots + kChunk) * d, [&](size_t) {
    kernels.slot_write(
        {kChunk, kSlots, d, d, k.data(), width, v.data(), width, carry.data(), weight.data(), keys.data(), values.data()});
  });
}

void SlotRead(benchmark::State& state, const Kernels& kernels, const BenchModel& model, size_t rows) {
  const size_t d = model.head_dim, memories = kHeads * model.layers, elements = kSlots * d;
  Floats o(rows * d), scratch(rows * kSlots);
  const Floats q = Numbers(rows * d), keys = Numbers(memories * elements), values = Numbers(memories * elements);
  Measure(state, rows, 2 * sizeof(float) * elements, [&](size_t i) {
    const size_t at = i % memories * elements;
    kernels.slot_read(
        {rows, 1, kSlots, d, d, q.data(), d, keys.data() + at, values.data() + at, nullptr, 0.125f, o.data(), d, scratch.data()});
  });
}

void ScorePeak(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t d = model.head_dim, width = model.width;
  Floats scratch(ScoreScratch(kChunk, d)), measure(kChunk);
  const Floats q = Numbers(kChunk * width), k = Numbers(kKeys * width);
  Measure(state, kChunk, sizeof(float) * kKeys * d, [&](size_t) {
    kernels.score_peak({kChunk, kKeys, d, q.data(), width, k.data(), width, scratch.data()}, measure.data());
  });
}

void NearestCode(benchmark::State& state, const Kernels& kernels) {
  constexpr size_t kCenters = 128;
  std::vector<uint64_t> codes(kKeys), centers(kCenters);
  uint64_t x = 1;
  for (uint64_t& code : codes) code = x = x * 6364136223846793005u + 1442695040888963407u;
  for (uint64_t& center : centers) center = x = x * 6364136223846793005u + 1442695040888963407u;
  std::vector<uint32_t> nearest(kKeys);
  Measure(state, kKeys, sizeof(uint64_t) * (kKeys + kCenters),
          [&](size_t) { kernels.nearest_code(kKeys, codes.data(), kCenters, centers.data(), nearest.data()); });
}

}  // namespace

void AddNoncausal(const Kernels& kernels) {
  for (const BenchModel& model : kModels) {
    const std::string name = model.name;
    Add("linear_write/" + name, [&kernels, &model](benchmark::State& state) { LinearWrite(state, kernels, model); });
    Add("slot_write/" + name, [&kernels, &model](benchmark::State& state) { SlotWrite(state, kernels, model); });
    Add("score_peak/" + name, [&kernels, &model](benchmark::State& state) { ScorePeak(state, kernels, model); });
    for (const size_t rows : {size_t{1}, size_t{4}, kChunk}) {
      const std::string of_rows = name + "/rows:" + std::to_string(rows);
      Add("linear_read/" + of_rows, [&kernels, &model, rows](benchmark::State& state) { LinearRead(state, kernels, model, rows); });
      Add("slot_read/" + of_rows, [&kernels, &model, rows](benchmark::State& state) { SlotRead(state, kernels, model, rows); });
    }
  }
  Add("nearest_code", [&kernels](benchmark::State& state) { NearestCode(state, kernels); });
}

}  // namespace tarn::bench
