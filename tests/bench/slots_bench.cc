// Slot memory and its controls.
#include <string>

#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

void SlotStep(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t d = model.head_dim, states = kHeads * model.layers, elements = kSlots * d;
  Floats keys(states * elements), values(states * elements), o(d), scratch(kSlots);
  const Floats q = Numbers(d), k = Numbers(d), v = Numbers(d), decay(kSlots, 0.9f), write(kSlots, 0.1f), bias(kSlots);
  Measure(state, 1, 4 * sizeof(float) * elements, [&](size_t i) {
    const size_t at = i % states * elements;
    kernels.slot_step({1, kSlots, d, d, q.data(), k.data(), v.data(), decay.data(), write.data(), bias.data(), 0.125f,
                       keys.data() + at, values.data() + at, o.data(), scratch.data()});
  });
}

void SlotChunk(benchmark::State& state, const Kernels& kernels, const BenchModel& model) {
  const size_t d = model.head_dim, width = model.width;
  Floats keys(kSlots * d), values(kSlots * d), o(kChunk * width), scratch(SlotChunkScratch(kChunk, kSlots, d, d));
  const Floats q = Numbers(kChunk * width), k = Numbers(kChunk * width), v = Numbers(kChunk * width);
  const Floats half(kChunk * kSlots, 0.5f), zero(kChunk * kSlots);
  Measure(state, kChunk, 4 * sizeof(float) * (kSlots + kChunk) * d, [&](size_t) {
    kernels.slot_chunk({kChunk,   1,     kSlots,        d,           d,           q.data(),    width,  k.data(),    width,
                        v.data(), width, half.data(),   half.data(), half.data(), zero.data(), 0.125f, keys.data(), values.data(),
                        o.data(), width, scratch.data()});
  });
}

// What any control may read.
struct ControlInputs {
  Floats logits = Numbers(kChunk * kSlots), schedule = Numbers(kChunk * kSlots), k = Numbers(64), keys = Numbers(64 * kSlots);
  Floats mass = Numbers(kSlots, 1, 2);
  std::vector<int32_t> index = std::vector<int32_t>(kChunk, 3);
  std::vector<uint32_t> positions;
  SlotControlArgs args{};

  explicit ControlInputs(size_t tokens) {
    for (uint32_t i = 0; i < kSlots; ++i) positions.push_back(i);
    args.tokens = tokens;
    args.slots = kSlots;
    args.logits = logits.data();
    args.logit_stride = kSlots;
    args.schedule = schedule.data();
    args.attributes.max_len = kChunk;
    args.index = index.data();
    args.index_stride = 1;
    args.positions = positions.data();
    args.k = k.data();
    args.keys = keys.data();
    args.key_dim = k.size();
    args.mass = mass.data();
  }
};

// Each iteration starts from the same mass.
void Control(benchmark::State& state, const Kernels& kernels, size_t control, size_t tokens) {
  ControlInputs inputs(tokens);
  const Floats mass = inputs.mass;
  Floats a(tokens * kSlots), b(tokens * kSlots), c(tokens * kSlots), d(tokens * kSlots);
  Measure(state, tokens, 5 * sizeof(float) * tokens * kSlots, [&](size_t) {
    inputs.mass = mass;
    if (tokens == 1) {
      kernels.slot_control_step[control](inputs.args, a.data(), b.data(), c.data());
    } else {
      kernels.slot_control_chunk[control](inputs.args, a.data(), b.data(), c.data(), d.data());
    }
  });
}

}  // namespace

void AddSlots(const Kernels& kernels) {
  for (const BenchModel& model : kModels) {
    const std::string name = model.name;
    Add("slot_step/" + name, [&kernels, &model](benchmark::State& state) { SlotStep(state, kernels, model); });
    Add("slot_chunk/" + name, [&kernels, &model](benchmark::State& state) { SlotChunk(state, kernels, model); });
  }
  for (size_t control = 0; control < kSlotControlCount; ++control) {
    if (!kSlotControls[control].causal) continue;
    const size_t place = CausalPlace(control);
    Add(std::string("slot_control_step/") + kSlotControls[control].name,
        [&kernels, place](benchmark::State& state) { Control(state, kernels, place, 1); });
    if (!kSlotControls[control].chunks) continue;
    Add(std::string("slot_control_chunk/") + kSlotControls[control].name,
        [&kernels, place](benchmark::State& state) { Control(state, kernels, place, kChunk); });
  }
}

}  // namespace tarn::bench
