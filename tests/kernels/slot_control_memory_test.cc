// The controls of slot memory through the memory that they fill: chunks against steps, factors at the edge of f32.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/slot_control_case.h"

namespace tarn::testing {
namespace {

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
  const bool counts = !c.attributes.has_logits();
  ExpectNear("mass", expected.mass, actual.mass, [&](size_t) { return counts ? 0.0 : 60 * (tokens + 1) * kU; });
}

TEST(SlotControlMemory, ChunkEqualsSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (const SlotControl control : CausalControls()) {
      for (const uint64_t seen : Seen(control)) {
        for (const size_t tokens : {2, 7, 64}) {
          SCOPED_TRACE(::testing::Message() << InfoOf(control).name << ", " << tokens << " tokens after " << seen);
          Case c(random, control, tokens, 19, seen, 6.0f);
          c.attributes.mask_empty = tokens != 7;
          if (tokens == 7) c.attributes.activation = SlotActivation::kSigmoid;
          const Memory steps = RunSteps(kernels, c);
          CompareMemory(c, RunSteps(Reference(), c), steps);
          const Memory chunk = RunChunk(kernels, c);
          ASSERT_EQ(chunk.o.empty(), !InfoOf(control).chunks);
          if (!chunk.o.empty()) CompareMemory(c, steps, chunk);
        }
      }
    }
  });
}

// Gates that forget almost everything inside the chunk: gains up to e^40 meet weights down to e^-40.
TEST(SlotControlMemory, GsaForgetsInsideAChunk) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (const uint64_t seen : {0, 9}) {
      Case c(random, SlotControl::kGsa, 20, 21, seen, 1.0f);
      c.attributes.gate_normalizer = 1.0f;
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
TEST(SlotControlMemory, GsaRefusesFactorsOutsideOfF32) {
  ForEachTable([](const Kernels& kernels) {
    Random random(5);
    for (const size_t slots : {1, 5, 16, 37}) {
      Case c(random, SlotControl::kGsa, 300, slots, 0, 1.0f);
      c.attributes.gate_normalizer = 1.0f;
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
TEST(SlotControlMemory, ClusteringTiesGoToTheLowerIndex) {
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
TEST(SlotControlMemory, FullSlotsStayMeans) {
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

// Every mean key is that of the tokens that chose it, and each token chose the nearest.
TEST(SlotControlMemory, ReferenceClusters) {
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

}  // namespace
}  // namespace tarn::testing
