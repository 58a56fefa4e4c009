// The controls of slot memory other than ABC-MLP's: every table against the reference, the reference against the definitions; and
// of all controls, chunks against steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr uint64_t kLong = (uint64_t{1} << 33) + 5;  // beyond 32 bits, and beyond what f32 counts

constexpr SlotControl kOthers[] = {SlotControl::kLinformer,       SlotControl::kAssigned,         SlotControl::kGlobal,
                                   SlotControl::kCompressiveMean, SlotControl::kClusteringOnline, SlotControl::kGsa,
                                   SlotControl::kLunaCausal};

// Some tokens after `tokens_seen` others, and the memory that they find.
struct Case {
  SlotControl control;
  size_t tokens, queries = 2, slots, key_dim = 24, value_dim = 20;
  uint64_t tokens_seen;
  bool mask_empty = true;
  float gate_normalizer = 8.0f;
  uint64_t max_len;
  SlotActivation activation = SlotActivation::kExp;
  Floats logits, schedule;
  std::vector<int32_t> index;
  std::vector<uint32_t> positions;
  Floats mass, keys, values;  // [n], [d, n], [n, dv]
  Floats q, k, v;             // [C, G, d], [C, d], [C, dv]

  Case(Random& random, SlotControl which, size_t c, size_t n, uint64_t seen, float range)
      : control(which), tokens(c), slots(n), tokens_seen(seen), max_len(seen + c + 3) {
    logits = random.Uniform(c * n, -range, range);
    if (which == SlotControl::kLinformer) schedule = random.Uniform(static_cast<size_t>(max_len) * n, -1.0f, 1.0f);
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
    a.activation = activation;
    a.clamp_min = -HUGE_VALF;
    a.clamp_max = HUGE_VALF;
    a.gate_normalizer = gate_normalizer;
    a.schedule = schedule.data();
    a.max_len = max_len;
    a.positions = positions.data();
    a.key_dim = key_dim;
    a.mask_empty = mask_empty;
    const bool counts = control == SlotControl::kAbcMlp || control == SlotControl::kCompressiveMean ||
                        control == SlotControl::kClusteringOnline || (control == SlotControl::kAssigned && mask_empty);
    a.mass = counts ? members : nullptr;
    return a;
  }

  size_t Entry() const { return static_cast<size_t>(control); }
};

struct Factors {
  bool fits = true;
  Floats a, b, c, bias;  // a step's decay and write, or a chunk's carry, gain, weight
  Floats mass;
};

Factors Step(const Kernels& table, const Case& c, Place place) {
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

Factors Chunk(const Kernels& table, const Case& c, Place place) {
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
double Relative(const Case& c) {
  double longest = 0;  // -F at the end of the chunk
  for (size_t j = 0; j < c.slots && c.control == SlotControl::kGsa; ++j) {
    double sum = 0;
    for (size_t t = 0; t < c.tokens; ++t) {
      const double x = c.logits[t * c.slots + j];
      sum += (std::fmax(-x, 0.0) + std::log1p(std::exp(-std::fabs(x)))) / static_cast<double>(c.gate_normalizer);
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
      return 2 * kU;
  }
}

void Compare(const Case& c, const Factors& expected, const Factors& actual) {
  ASSERT_EQ(expected.fits, actual.fits);
  ExpectEqual("mass", expected.mass, actual.mass);
  if (!expected.fits) return ExpectEqual("mass of a refused chunk", c.mass, actual.mass);
  const double u = Relative(c);
  const auto near = [&](const char* what, const Floats& e, const Floats& a) {
    ExpectNear(what, e, a, [&](size_t i) { return u * std::fabs(e[i]) + 1e-37; });
  };
  near("decay or carry", expected.a, actual.a);
  near("write or gain", expected.b, actual.b);
  near("weight", expected.c, actual.c);
  ExpectEqual("bias", expected.bias, actual.bias);
}

std::vector<uint64_t> Seen(SlotControl control) {
  if (control == SlotControl::kLunaCausal || control == SlotControl::kGlobal) return {0, 7, kLong};
  return {0, 7, 50};
}

TEST(SlotControl, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const SlotControl control : kOthers) {
      for (const size_t slots : Sizes()) {
        for (const uint64_t seen : Seen(control)) {
          for (const float range : {3.0f, 1000.0f}) {
            Case c(random, control, 1, slots, seen, range);
            c.mask_empty = slots % 2 == 0;
            const Place place = range > 10 ? Place::kEnd : Place::kShifted;
            Compare(c, Step(Reference(), c, place), Step(kernels, c, place));
          }
        }
      }
    }
  });
}

TEST(SlotControl, ChunkOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const SlotControl control : kOthers) {
      for (size_t slots = 1; slots <= 35; ++slots) {
        for (const uint64_t seen : Seen(control)) {
          Case c(random, control, 1 + (slots * 7) % 20, slots, seen, slots % 3 == 0 ? 30.0f : 4.0f);
          c.mask_empty = slots % 2 == 0;
          const Place place = slots % 4 < 2 ? Place::kEnd : Place::kShifted;
          Compare(c, Chunk(Reference(), c, place), Chunk(kernels, c, place));
        }
      }
    }
  });
}

// ---- through the memory
// ----------------------------------------------------------------------------------------------------------

struct Memory {
  Floats o, keys, values, mass;
  double key_size = 0, value_size = 0;  // the largest element of K~ and V~ at any time
};

void Grow(double& size, const Floats& x) {
  for (const float value : x) size = std::fmax(size, std::fabs(static_cast<double>(value)));
}

Memory RunSteps(const Kernels& table, const Case& c) {
  Memory m = {{}, c.keys, c.values, c.mass};
  Floats decay(c.slots), write(c.slots), bias(c.slots), o(c.queries * c.value_dim), scratch(c.queries * c.slots);
  for (size_t t = 0; t < c.tokens; ++t) {
    SlotControlArgs args = c.Args(m.mass.data());
    args.tokens = 1;
    args.tokens_seen = c.tokens_seen + t;
    args.logits = &c.logits[t * c.slots];
    args.logit_stride = c.slots;
    args.index = &c.index[t];
    args.index_stride = 1;
    args.k = &c.k[t * c.key_dim];
    args.keys = m.keys.data();
    table.slot_control_step[c.Entry()](args, decay.data(), write.data(), bias.data());
    table.slot_step({c.queries, c.slots, c.key_dim, c.value_dim, &c.q[t * c.queries * c.key_dim], &c.k[t * c.key_dim],
                     &c.v[t * c.value_dim], decay.data(), write.data(), bias.data(), 0.2f, m.keys.data(), m.values.data(), o.data(),
                     scratch.data()});
    m.o.insert(m.o.end(), o.begin(), o.end());
    Grow(m.key_size, m.keys);
    Grow(m.value_size, m.values);
  }
  return m;
}

// Empty where the chunk has no factors.
Memory RunChunk(const Kernels& table, const Case& c) {
  Memory m = {{}, c.keys, c.values, c.mass};
  const size_t n = c.tokens * c.slots;
  Floats carry(n), gain(n), weight(n), bias(n), o(c.tokens * c.queries * c.value_dim);
  Floats scratch(SlotChunkScratch(c.tokens, c.slots, c.key_dim, c.value_dim));
  SlotControlArgs args = c.Args(m.mass.data());
  args.tokens = c.tokens;
  args.logits = c.logits.data();
  args.logit_stride = c.slots;
  args.index = c.index.data();
  args.index_stride = 1;
  if (!table.slot_control_chunk[c.Entry()](args, carry.data(), gain.data(), weight.data(), bias.data())) return {};
  table.slot_chunk({c.tokens,
                    c.queries,
                    c.slots,
                    c.key_dim,
                    c.value_dim,
                    c.q.data(),
                    c.queries * c.key_dim,
                    c.k.data(),
                    c.key_dim,
                    c.v.data(),
                    c.value_dim,
                    carry.data(),
                    gain.data(),
                    weight.data(),
                    bias.data(),
                    0.2f,
                    m.keys.data(),
                    m.values.data(),
                    o.data(),
                    c.queries * c.value_dim,
                    scratch.data()});
  m.o = o;
  return m;
}

// Sizes are those of the same run with every input positive, so that nothing cancels. A cell sums at most C + 1 products, each of
// which the steps round 4 times per token and whose control is off by `Relative` per token; a logit sums d cells; a probability is
// off by twice what a logit is, its exponential and sum by n + 8, and o by that fraction of the largest value, and by its own sum
// of n + C.
void CompareMemory(const Case& c, const Memory& expected, const Memory& actual) {
  Case positive = c;
  for (Floats* x : {&positive.schedule, &positive.keys, &positive.values, &positive.k, &positive.v}) *x = Abs(*x);
  if (c.control == SlotControl::kClusteringOnline) positive = c;  // means are no larger than their members, |x| <= 1
  const Memory size = RunSteps(Reference(), positive);
  const double big_k = std::fmax(size.key_size, 1.0), big_v = std::fmax(size.value_size, 1.0);
  const double tokens = static_cast<double>(c.tokens), n = static_cast<double>(c.slots), d = static_cast<double>(c.key_dim);
  const double cell = (5 * tokens + 8) * kU + (tokens + 1) * Relative(c);
  const double delta = 0.2 * d * big_k * (cell + (d + tokens + 6) * kU);
  const double o = big_v * (2 * delta + (2 * n + tokens + 12) * kU + cell);
  ExpectNear("o", expected.o, actual.o, [&](size_t) { return o; });
  ExpectNear("K~", expected.keys, actual.keys, [&](size_t) { return cell * big_k; });
  ExpectNear("V~", expected.values, actual.values, [&](size_t) { return cell * big_v; });
  const bool counts = c.control != SlotControl::kAbcMlp;
  ExpectNear("mass", expected.mass, actual.mass, [&](size_t) { return counts ? 0.0 : 60 * (tokens + 1) * kU; });
}

TEST(SlotControl, ChunkEqualsSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (size_t i = 0; i < kSlotControlCount; ++i) {
      const SlotControl control = static_cast<SlotControl>(i);
      for (const uint64_t seen : Seen(control)) {
        for (const size_t tokens : {2, 7, 64}) {
          SCOPED_TRACE(::testing::Message() << "control " << i << ", " << tokens << " tokens after " << seen);
          Case c(random, control, tokens, 19, seen, 6.0f);
          c.mask_empty = tokens != 7;
          if (tokens == 7) c.activation = SlotActivation::kSigmoid;
          const Memory steps = RunSteps(kernels, c);
          CompareMemory(c, RunSteps(Reference(), c), steps);
          const Memory chunk = RunChunk(kernels, c);
          ASSERT_EQ(chunk.o.empty(), control == SlotControl::kClusteringOnline);
          if (!chunk.o.empty()) CompareMemory(c, steps, chunk);
        }
      }
    }
  });
}

// Gates that forget almost everything inside the chunk: gains up to e^40 meet weights down to e^-40.
TEST(SlotControl, GsaForgetsInsideAChunk) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (const uint64_t seen : {0, 9}) {
      Case c(random, SlotControl::kGsa, 20, 21, seen, 1.0f);
      c.gate_normalizer = 1.0f;
      for (size_t i = 0; i < c.logits.size(); ++i) c.logits[i] = random.Uniform(-4.0f, -3.0f);
      const Memory chunk = RunChunk(kernels, c);
      ASSERT_FALSE(chunk.o.empty());
      CompareMemory(c, RunSteps(Reference(), c), chunk);
      for (size_t j = 0; j < c.slots; ++j) c.logits[j] = -1000.0f;  // what the first token forgets is nobody's gain
      const Memory forgotten = RunChunk(kernels, c);
      ASSERT_FALSE(forgotten.o.empty());
      // carry is 0 from the start, and all differences are those of the other 19 tokens
      CompareMemory(c, RunSteps(Reference(), c), forgotten);
    }
  });
}

// e^-F may not exceed e^80 in any slot, and what lies beside the last slot has no say.
TEST(SlotControl, GsaRefusesFactorsOutsideOfF32) {
  ForEachTable([](const Kernels& kernels) {
    Random random(5);
    for (const size_t slots : {1, 5, 16, 37}) {
      Case c(random, SlotControl::kGsa, 300, slots, 0, 1.0f);
      c.gate_normalizer = 1.0f;
      c.logits.assign(300 * slots, 20.0f);
      EXPECT_TRUE(Chunk(kernels, c, Place::kEnd).fits);
      c.logits[100 * slots + slots - 1] = -79.5f;
      EXPECT_TRUE(Chunk(kernels, c, Place::kEnd).fits);
      c.logits[200 * slots + slots - 1] = -2.0f;
      const Factors refused = Chunk(kernels, c, Place::kEnd);
      EXPECT_FALSE(refused.fits);
      ExpectEqual("mass", c.mass, refused.mass);
    }
  });
}

// Equal distances go to the lower index, in whatever lanes the two are.
TEST(SlotControl, ClusteringTiesGoToTheLowerIndex) {
  ForEachTable([](const Kernels& kernels) {
    Random random(6);
    for (const size_t slots : {2, 9, 33, 64}) {
      for (size_t first = 0; first + 1 < slots; first += 3) {
        Case c(random, SlotControl::kClusteringOnline, 1, slots, 1000, 1.0f);
        const size_t second = slots - 1 - first / 4;
        if (second <= first) continue;
        for (size_t x = 0; x < c.key_dim; ++x) c.keys[x * slots + first] = c.keys[x * slots + second] = c.k[x] + 0.01f;
        const Factors step = Step(kernels, c, Place::kEnd);
        for (size_t j = 0; j < slots; ++j) EXPECT_EQ(step.b[j] > 0.0f, j == first) << j << " of " << slots;
        EXPECT_EQ(step.mass[first], c.mass[first] + 1.0f);
      }
    }
  });
}

// A mean of 2^24 members keeps moving by 2^-24, and no count leaves what f32 counts.
TEST(SlotControl, FullSlotsStayMeans) {
  ForEachTable([](const Kernels& kernels) {
    Random random(7);
    for (const SlotControl control : {SlotControl::kCompressiveMean, SlotControl::kClusteringOnline}) {
      Case c(random, control, 1, 1, 1000, 1.0f);
      c.mass = {0x1p24f};
      const Factors step = Step(kernels, c, Place::kEnd);
      EXPECT_EQ(step.mass[0], 0x1p24f);
      EXPECT_EQ(step.a[0], 1.0f - 0x1p-24f);
      EXPECT_NEAR(step.b[0], 0x1p-24, 0x1p-46);
    }
  });
}

// ---- the definitions
// ---------------------------------------------------------------------------------------------------------------

double Softplus2(double x) { return x > 30.0 ? x : std::log2(1.0 + std::exp2(x)); }

double Forget(const Case& c, double x) {
  return std::pow(1.0 / (1.0 + std::exp(-x)), 1.0 / static_cast<double>(c.gate_normalizer));
}

size_t Pool(const Case& c, size_t t) { return c.slots * t / static_cast<size_t>(c.max_len); }

// How much of token i slot j holds after token t, as the papers have it (MATH 0.1 and the sections named in kernels.h).
double Held(const Case& c, size_t t, size_t i, size_t j) {
  const double logit = c.logits[i * c.slots + j];
  double held = 0;
  switch (c.control) {
    case SlotControl::kLinformer:
      return c.schedule[i * c.slots + j];
    case SlotControl::kAssigned:
      return c.index[i] == static_cast<int32_t>(j) ? 1.0 : 0.0;
    case SlotControl::kGlobal:
      return c.positions[j] == i ? 1.0 : 0.0;
    case SlotControl::kCompressiveMean:
      for (size_t s = 0; s <= t; ++s) held += Pool(c, s) == j ? 1.0 : 0.0;
      return Pool(c, i) == j ? 1.0 / held : 0.0;
    case SlotControl::kGsa:
      held = 1.0 - Forget(c, logit);
      for (size_t s = i + 1; s <= t; ++s) held *= Forget(c, c.logits[s * c.slots + j]);
      return held;
    default:
      return Softplus2(logit) / static_cast<double>(t + 1);
  }
}

TEST(SlotControl, ReferenceIsTheDefinition) {
  Random random(8);
  constexpr size_t kTokens = 23, kSlots = 6;
  for (const SlotControl control : kOthers) {
    if (control == SlotControl::kClusteringOnline) continue;
    Case c(random, control, kTokens, kSlots, 0, 5.0f);
    std::vector<Floats> held;
    Case one = c;
    for (size_t t = 0; t < kTokens; ++t) {
      one.tokens_seen = t;
      one.index = {c.index[t]};
      one.logits.assign(&c.logits[t * kSlots], &c.logits[t * kSlots] + kSlots);
      const Factors step = Step(Reference(), one, Place::kEnd);
      one.mass = step.mass;
      held.push_back(step.b);
      for (size_t j = 0; j < kSlots; ++j) {
        bool written = false;
        for (size_t i = 0; i <= t; ++i) {
          if (i < t) held[i][j] *= step.a[j];
          written = written || held[i][j] != 0.0f;
          EXPECT_NEAR(held[i][j], Held(c, t, i, j), 100 * kU * std::fmax(1.0, std::fabs(Held(c, t, i, j))))
              << t << " " << i << " " << j;
        }
        EXPECT_EQ(step.bias[j], written ? 0.0f : -HUGE_VALF) << "control " << static_cast<int>(control) << " " << t << " " << j;
      }
    }
  }
}

// Every mean key is that of the tokens that chose it, and each token chose the nearest.
TEST(SlotControl, ReferenceClusters) {
  Random random(9);
  Case c(random, SlotControl::kClusteringOnline, 40, 5, 0, 1.0f);
  std::vector<std::vector<size_t>> members(c.slots);
  for (size_t t = 0; t < c.tokens; ++t) {
    size_t nearest = t;
    double least = HUGE_VAL;
    for (size_t j = 0; j < c.slots && t >= c.slots; ++j) {
      double distance = 0;
      for (size_t x = 0; x < c.key_dim; ++x) {
        double mean = 0;
        for (const size_t i : members[j]) mean += c.k[i * c.key_dim + x] / static_cast<double>(members[j].size());
        distance += (c.k[t * c.key_dim + x] - mean) * (c.k[t * c.key_dim + x] - mean);
      }
      if (distance < least) {
        least = distance;
        nearest = j;
      }
    }
    members[nearest].push_back(t);
  }
  const Memory memory = RunSteps(Reference(), c);
  for (size_t j = 0; j < c.slots; ++j) {
    EXPECT_EQ(memory.mass[j], static_cast<float>(members[j].size()));
    for (size_t x = 0; x < c.key_dim; ++x) {
      double mean = 0;
      for (const size_t i : members[j]) mean += c.k[i * c.key_dim + x] / static_cast<double>(members[j].size());
      EXPECT_NEAR(memory.keys[x * c.slots + j], mean, 40 * 4 * kU);
    }
  }
}

// Two tables may differ where two slots are equally near to the last bits: the one that is chosen must be as near as the
// reference's, within the error of a sum of d squares of a rounded difference. Equal slots go to the first, whatever lane they are
// in.
TEST(SlotControl, NearestSlotOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(12);
    for (const size_t slots : Sizes()) {
      const size_t d = 1 + (slots * 7) % 40, tokens = 1 + slots % 11, stride = d + 3;
      const Place place = slots % 2 == 0 ? Place::kEnd : Place::kShifted;
      Floats means = random.Uniform(d * slots, -1.0f, 1.0f);
      for (size_t x = 0; x < d; ++x) means[x * slots + slots - 1] = means[x * slots + slots / 2];
      Floats rows = random.Uniform(tokens * d, -1.0f, 1.0f);
      for (size_t x = 0; x < d; ++x) rows[x] = means[x * slots + slots - 1];  // the first token lies on the equal slots
      Buffer<float> k(Strided(rows, d, stride), place), keys(means, place), scratch(slots, place);
      Buffer<int32_t> index(tokens, place);
      kernels.nearest_slot({tokens, slots, d, k.data(), stride, keys.data(), index.data(), scratch.data()});
      EXPECT_EQ(index.data()[0], static_cast<int32_t>(slots / 2));
      for (size_t t = 0; t < tokens; ++t) {
        ASSERT_LT(static_cast<size_t>(index.data()[t]), slots);
        double least = HUGE_VAL, found = 0;
        for (size_t j = 0; j < slots; ++j) {
          double distance = 0;
          for (size_t x = 0; x < d; ++x) distance += std::pow(static_cast<double>(rows[t * d + x]) - means[x * slots + j], 2);
          least = std::fmin(least, distance);
          if (j == static_cast<size_t>(index.data()[t])) found = distance;
        }
        EXPECT_LE(found, least * (1 + 2 * (static_cast<double>(d) + 4) * kU)) << t << " of " << slots << " slots";
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
