// Inputs of slot memory's controls, and what a table makes of them.
#ifndef TARN_TESTS_KERNELS_SLOT_CONTROL_CASE_H_
#define TARN_TESTS_KERNELS_SLOT_CONTROL_CASE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {

constexpr uint64_t kLong = (uint64_t{1} << 33) + 5;  // beyond 32 bits, and beyond what f32 counts

// Some tokens after `tokens_seen` others, and the memory that they find.
struct Case {
  SlotControl control;
  size_t tokens, queries = 2, slots, key_dim = 24, value_dim = 20;
  uint64_t tokens_seen;
  SlotAttributes attributes;
  Floats logits, schedule;
  std::vector<int32_t> index;
  std::vector<uint32_t> positions;
  Floats mass, keys, values;  // [n], [d, n], [n, dv]
  Floats q, k, v;             // [C, G, d], [C, d], [C, dv]

  Case(Random& random, SlotControl which, size_t c, size_t n, uint64_t seen, float range)
      : control(which), tokens(c), slots(n), tokens_seen(seen) {
    attributes.control = which;
    attributes.mask_empty = true;
    attributes.gate_normalizer = 8.0f;
    attributes.max_len = seen + c + 3;
    logits = random.Uniform(c * n, -range, range);
    if (attributes.has_schedule()) schedule = random.Uniform(static_cast<size_t>(attributes.max_len) * n, -1.0f, 1.0f);
    for (size_t t = 0; t < c; ++t) index.push_back(static_cast<int32_t>(random.Uniform(0.0f, static_cast<float>(n) - 0.01f)));
    // Some before the chunk, some inside of it, some after it.
    for (size_t j = 0; j < n; ++j) positions.push_back(static_cast<uint32_t>(seen % 1000 / 2 + j * (c + seen % 1000) / n));
    // Members, or a log-sum-exp; before the first token all is zero.
    mass.assign(n, 0.0f);
    if (seen > 0) {
      for (float& m : mass) m = std::floor(random.Uniform(0.0f, 4.0f));
    }
    keys = seen > 0 ? random.Uniform(key_dim * n, -1.0f, 1.0f) : Floats(key_dim * n, 0.0f);
    values = seen > 0 ? random.Uniform(n * value_dim, -1.0f, 1.0f) : Floats(n * value_dim, 0.0f);
    q = random.Uniform(c * queries * key_dim, -1.0f, 1.0f);
    k = random.Uniform(c * key_dim, -1.0f, 1.0f);
    v = random.Uniform(c * value_dim, -1.0f, 1.0f);
  }

  // What is the same in every call. `mass` is given only to those that the contract gives it to.
  SlotControlArgs Args(float* members) const {
    SlotControlArgs a = {};
    a.slots = slots;
    a.tokens_seen = tokens_seen;
    a.attributes = attributes;
    a.schedule = schedule.data();
    a.positions = positions.data();
    a.key_dim = key_dim;
    a.mass = attributes.has_mass() ? members : nullptr;
    return a;
  }

  size_t Entry() const { return CausalPlace(control); }
};

struct Factors {
  bool fits = true;
  Floats a, b, c, bias;  // a step's decay and write, or a chunk's carry, gain, weight
  Floats mass;
};

inline Factors Step(const Kernels& table, const Case& c, Place place) {
  Buffer<float> logits(c.logits, place), mass(c.mass, place), k(c.k, place), keys(c.keys, place);
  Buffer<float> decay(c.slots, place), write(c.slots, place), bias(c.slots, place);
  SlotControlArgs args = c.Args(mass.data());
  args.tokens = 1;
  args.logits = logits.data();
  args.logit_stride = c.slots;
  args.index = c.index.data();
  args.index_stride = 1;
  args.k = k.data();
  args.keys = keys.data();
  table.slot_control_step[c.Entry()](args, decay.data(), write.data(), bias.data());
  return {true, decay.values(), write.values(), {}, bias.values(), mass.values()};
}

inline Factors Chunk(const Kernels& table, const Case& c, Place place) {
  const size_t stride = c.slots + 3, n = c.tokens * c.slots;
  Buffer<float> logits(Strided(c.logits, c.slots, stride), place), mass(c.mass, place);
  Buffer<float> carry(n, place), gain(n, place), weight(n, place), bias(n, place);
  std::vector<int32_t> spread(3 * c.tokens - 2, -1);
  for (size_t t = 0; t < c.tokens; ++t) spread[3 * t] = c.index[t];
  Buffer<int32_t> index(spread, place);
  SlotControlArgs args = c.Args(mass.data());
  args.tokens = c.tokens;
  args.logits = logits.data();
  args.logit_stride = stride;
  args.index = index.data();
  args.index_stride = 3;
  const bool fits = table.slot_control_chunk[c.Entry()](args, carry.data(), gain.data(), weight.data(), bias.data());
  return {fits, carry.values(), gain.values(), weight.values(), bias.values(), mass.values()};
}

// Relative error of a step's decay or write, or of a chunk's factor. GSA: f is off by 8 u|f|, the sum of the chunk's by another u
// of it per token, and the exponential relatively by that; 4 for the rest. Luna: 2^-|x| is off relatively by 2 u |x| ln 2, at most
// 2*104 u where it is not 0, 12 for the rest. The others: a quotient in f64.
inline double Relative(const Case& c) {
  double longest = 0;  // -F at the end of the chunk
  for (size_t j = 0; j < c.slots && c.control == SlotControl::kGsa; ++j) {
    double sum = 0;
    for (size_t t = 0; t < c.tokens; ++t) {
      const double x = c.logits[t * c.slots + j];
      sum += (std::fmax(-x, 0.0) + std::log1p(std::exp(-std::fabs(x)))) / static_cast<double>(c.attributes.gate_normalizer);
    }
    longest = std::fmax(longest, sum);
  }
  const double tokens = static_cast<double>(c.tokens);
  switch (c.control) {
    case SlotControl::kGsa:
      return ((tokens + 8) * std::fmin(longest, 104.0) + 12) * kU;
    case SlotControl::kLunaCausal:
      return 220 * kU;
    case SlotControl::kAbcMlp:
      return (104 + 30 * tokens) * kU;  // as in slot_abc_test.cc, with logits below 10
    default:
      return c.attributes.has_logits() ? 220 * kU : 2 * kU;
  }
}

// Controls that the SlotMemory op has.
inline std::vector<SlotControl> CausalControls() {
  std::vector<SlotControl> controls;
  for (size_t i = 0; i < kSlotControlCount; ++i) {
    if (kSlotControls[i].causal) controls.push_back(static_cast<SlotControl>(i));
  }
  return controls;
}

inline void Compare(const Case& c, const Factors& expected, const Factors& actual) {
  ASSERT_EQ(expected.fits, actual.fits);
  if (!expected.fits) return ExpectEqual("mass of a refused chunk", c.mass, actual.mass);
  const double u = Relative(c);
  const auto near = [&](const char* what, const Floats& e, const Floats& a) {
    ExpectNear(what, e, a, [&](size_t i) { return u * std::fabs(e[i]) + 1e-37; });
  };
  if (c.attributes.has_logits()) {  // sums of controls; else members, which are counted
    near("mass", expected.mass, actual.mass);
  } else {
    ExpectEqual("mass", expected.mass, actual.mass);
  }
  near("decay or carry", expected.a, actual.a);
  near("write or gain", expected.b, actual.b);
  near("weight", expected.c, actual.c);
  ExpectEqual("bias", expected.bias, actual.bias);
}

inline std::vector<uint64_t> Seen(SlotControl control) {
  if (control == SlotControl::kLunaCausal || control == SlotControl::kGlobal) return {0, 7, kLong};
  return {0, 7, 50};
}

}  // namespace tarn::testing

#endif  // TARN_TESTS_KERNELS_SLOT_CONTROL_CASE_H_
