// Control by ABC-MLP: every table against the reference, chunks against steps, the reference against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

struct Case {
  size_t tokens, slots;
  SlotActivation activation;
  SlotNormalization normalization;
  bool mask_empty, first;
  float clamp;  // to [-clamp, clamp]
  Floats logits, mass;
};

struct Factors {
  bool fits = true;
  Floats a, b, c, bias;  // a step's decay and write, or a chunk's carry, gain, weight
  Floats mass;
};

constexpr size_t kAbc = CausalPlace(SlotControl::kAbcMlp);

SlotControlArgs Args(const Case& c, float* logits, size_t stride, float* mass) {
  SlotControlArgs args = {};
  args.tokens = c.tokens;
  args.slots = c.slots;
  args.tokens_seen = c.first ? 0 : 100;
  args.logits = logits;
  args.logit_stride = stride;
  args.attributes.activation = c.activation;
  args.attributes.normalization = c.normalization;
  args.attributes.logit_min = -c.clamp;
  args.attributes.logit_max = c.clamp;
  args.attributes.mask_empty = c.mask_empty;
  args.mass = mass;
  return args;
}

Factors Step(const Kernels& table, const Case& c, Place place) {
  Buffer<float> logits(c.logits, place), mass(c.mass, place);
  Buffer<float> decay(c.slots, place), write(c.slots, place), bias(c.slots, place);
  table.slot_control_step[kAbc](Args(c, logits.data(), c.slots, mass.data()), decay.data(), write.data(), bias.data());
  return {true, decay.values(), write.values(), {}, bias.values(), mass.values()};
}

Factors Chunk(const Kernels& table, const Case& c, Place place) {
  const size_t stride = c.slots + 3, n = c.tokens * c.slots;
  Buffer<float> logits(Strided(c.logits, c.slots, stride), place), mass(c.mass, place);
  Buffer<float> carry(n, place), gain(n, place), weight(n, place), bias(n, place);
  const bool fits = table.slot_control_chunk[kAbc](Args(c, logits.data(), stride, mass.data()), carry.data(), gain.data(),
                                                   weight.data(), bias.data());
  return {fits, carry.values(), gain.values(), weight.values(), bias.values(), mass.values()};
}

// Roundings. exp: a difference of two logits is off by u|difference|, and its exponential relatively by as much, which is below 104
// u where the result is not 0; log-sum-exps move by u of their size, and the frozen form takes one per token from the one before.
// Sums: one rounding per token. Sigmoids, quotients, logarithms and the oracle: 12.
double Relative(const Case& c) {
  double largest = 0;
  for (const float s : c.logits) largest = std::fmax(largest, std::fmin(std::fabs(s), c.clamp));
  for (const float m : c.mass) largest = std::fmax(largest, c.first ? 0.0f : std::fabs(m));
  const double tokens = static_cast<double>(c.tokens);
  const bool exponential = c.activation == SlotActivation::kExp;
  return ((exponential ? 104.0 + 3.0 * (tokens + 1.0) * largest : 0.0) + 2.0 * tokens + 12.0) * kU;
}

void Compare(const Case& c, const Factors& expected, const Factors& actual) {
  ASSERT_EQ(expected.fits, actual.fits);
  const double u = Relative(c);
  const auto near = [&](const char* what, const Floats& e, const Floats& a) {
    ExpectNear(what, e, a, [&](size_t i) { return u * std::fabs(e[i]) + 1e-37; });
  };
  if (!expected.fits) return ExpectEqual("mass of a refused chunk", c.mass, actual.mass);
  near("decay or carry", expected.a, actual.a);
  near("write or gain", expected.b, actual.b);
  near("weight", expected.c, actual.c);
  ExpectEqual("bias", expected.bias, actual.bias);
  // A log-sum-exp is a sum of logarithms: its error is absolute where it is near 0.
  ExpectNear("mass", expected.mass, actual.mass, [&](size_t i) { return u * std::fmax(std::fabs(expected.mass[i]), 1.0f); });
}

void ForEachKind(const std::function<void(Case)>& f) {
  for (const SlotActivation activation : {SlotActivation::kExp, SlotActivation::kRelu, SlotActivation::kSigmoid}) {
    for (const SlotNormalization normalization : {SlotNormalization::kRenorm, SlotNormalization::kFrozen}) {
      for (const bool first : {false, true}) {
        Case c = {};
        c.activation = activation;
        c.normalization = normalization;
        c.first = first;
        c.clamp = HUGE_VALF;
        f(c);
      }
    }
  }
}

void Fill(Case& c, Random& random, size_t tokens, size_t slots, float range) {
  if (c.activation == SlotActivation::kSigmoid) range = std::fmin(range, 80.0f);  // below e^-87 f32 keeps fewer digits
  c.tokens = tokens;
  c.slots = slots;
  c.logits = random.Uniform(tokens * slots, -range, range);
  // A mass that goes with the activation; before the first token it is zero, which is no log-sum-exp and must be ignored as such.
  c.mass = c.activation == SlotActivation::kExp ? random.Uniform(slots, -range, range) : random.Uniform(slots, 0.0f, range);
  if (c.first) c.mass.assign(slots, 0.0f);
  if (c.activation == SlotActivation::kRelu) {  // some slots that nothing was ever written to
    for (size_t j = 0; j < slots; j += 3) {
      c.mass[j] = 0.0f;
      for (size_t t = 0; t < (tokens + 1) / 2; ++t) c.logits[t * slots + j] = -1.0f;
    }
  }
}

TEST(SlotAbc, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    ForEachKind([&](Case c) {
      for (const size_t slots : Sizes()) {
        for (const float range : {3.0f, 1000.0f}) {
          c.mask_empty = slots % 2 == 0;
          Fill(c, random, 1, slots, range);
          const Place place = range > 10 ? Place::kEnd : Place::kShifted;
          Compare(c, Step(Reference(), c, place), Step(kernels, c, place));
        }
      }
    });
  });
}

TEST(SlotAbc, ChunkOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    ForEachKind([&](Case c) {
      for (size_t slots = 1; slots <= 35; ++slots) {
        c.mask_empty = slots % 2 == 0;
        c.clamp = slots % 3 == 0 ? 2.0f : HUGE_VALF;
        Fill(c, random, 1 + (slots * 7) % 20, slots, 5.0f);
        const Place place = slots % 4 < 2 ? Place::kEnd : Place::kShifted;
        Compare(c, Chunk(Reference(), c, place), Chunk(kernels, c, place));
      }
    });
  });
}

// What the chunk's factors stand for, b_ti = gain_t weight_i, is what the steps would have written and kept.
TEST(SlotAbc, ChunkEqualsSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    ForEachKind([&](Case c) {
      Fill(c, random, 30, 19, 4.0f);
      c.mask_empty = true;
      const Factors chunk = Chunk(kernels, c, Place::kEnd);
      ASSERT_TRUE(chunk.fits);
      const double u = 30.0 * Relative(c);  // a product of 30 decays, each with its own error
      Floats kept(c.slots, 1.0f);
      std::vector<Floats> held;  // held[i][j]: how much of token i is in slot j now
      Case one = c;
      one.tokens = 1;
      for (size_t t = 0; t < c.tokens; ++t) {
        const auto row = c.logits.begin() + static_cast<ptrdiff_t>(t * c.slots);
        one.logits.assign(row, row + static_cast<ptrdiff_t>(c.slots));
        one.first = c.first && t == 0;
        const Factors step = Step(kernels, one, Place::kEnd);
        one.mass = step.mass;
        held.push_back(step.b);
        for (size_t j = 0; j < c.slots; ++j) {
          kept[j] *= step.a[j];
          for (size_t i = 0; i < t; ++i) held[i][j] *= step.a[j];
          EXPECT_NEAR(chunk.a[t * c.slots + j], kept[j], u) << "carry " << t << " " << j;
          for (size_t i = 0; i <= t; ++i) {
            EXPECT_NEAR(chunk.b[t * c.slots + j] * chunk.c[i * c.slots + j], held[i][j], u) << t << " " << i << " " << j;
          }
          EXPECT_EQ(chunk.bias[t * c.slots + j], step.bias[j]);
        }
      }
      ExpectNear("mass", one.mass, chunk.mass, [&](size_t i) { return u * std::fmax(1.0f, std::fabs(one.mass[i])); });
    });
  });
}

// A logit that rises by more than 80 inside a chunk has no factors in f32: refused, mass untouched. Frozen never refuses.
TEST(SlotAbc, RefusesFactorsOutsideOfF32) {
  ForEachTable([](const Kernels& kernels) {
    for (const bool first : {false, true}) {
      for (const size_t slots : {5, 16, 40}) {
        Case c = {};
        c.tokens = 3;
        c.slots = slots;
        c.first = first;
        c.clamp = HUGE_VALF;
        c.logits.assign(3 * slots, 0.0f);
        c.mass.assign(slots, first ? 0.0f : -1.0f);
        c.logits[2 * slots + slots - 1] = 79.0f;
        EXPECT_TRUE(Chunk(kernels, c, Place::kEnd).fits);
        c.logits[2 * slots + slots - 1] = 81.5f;
        const Factors refused = Chunk(kernels, c, Place::kEnd);
        EXPECT_FALSE(refused.fits);
        ExpectEqual("mass", c.mass, refused.mass);
        c.clamp = 32.0f;
        EXPECT_TRUE(Chunk(kernels, c, Place::kEnd).fits);
        c.clamp = HUGE_VALF;
        c.normalization = SlotNormalization::kFrozen;
        Compare(c, Chunk(Reference(), c, Place::kEnd), Chunk(kernels, c, Place::kEnd));

        c.normalization = SlotNormalization::kRenorm;
        c.activation = SlotActivation::kRelu;
        c.mass.assign(slots, 0.0f);
        for (const float alpha : {1e-27f, 1e27f}) {  // 2^87 is 1.5e26
          c.logits[slots - 1] = alpha;
          const Factors sum = Chunk(kernels, c, Place::kEnd);
          EXPECT_FALSE(sum.fits) << alpha;
          ExpectEqual("mass", c.mass, sum.mass);
        }
        c.logits[slots - 1] = 0.5f;
        EXPECT_TRUE(Chunk(kernels, c, Place::kEnd).fits);
        c.activation = SlotActivation::kExp;
      }
    }
  });
}

// A history far heavier than the chunk, and one far lighter: both sides of the reference of the factors.
TEST(SlotAbc, ChunkAgainstAnyHistory) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (const float mass : {-1000.0f, -70.0f, -50.0f, 0.0f, 50.0f, 110.0f, 1000.0f}) {
      Case c = {};
      c.clamp = HUGE_VALF;
      Fill(c, random, 12, 21, 8.0f);
      c.mass.assign(21, mass);
      Compare(c, Chunk(Reference(), c, Place::kEnd), Chunk(kernels, c, Place::kEnd));
    }
  });
}

// MATH 1.8.1, renorm: after t tokens slot j holds token i with weight exp(s_i) / sum exp(s).
TEST(SlotAbc, ReferenceStepsAreASoftmaxOverPositions) {
  Random random(5);
  Case c = {};
  c.tokens = 1;
  c.slots = 4;
  c.first = true;
  c.clamp = HUGE_VALF;
  c.mass.assign(4, 0.0f);
  constexpr size_t kTokens = 25;
  const Floats logits = random.Uniform(kTokens * 4, -6.0f, 6.0f);
  std::vector<std::vector<double>> held;
  for (size_t t = 0; t < kTokens; ++t) {
    c.logits.assign(logits.begin() + static_cast<ptrdiff_t>(4 * t), logits.begin() + static_cast<ptrdiff_t>(4 * t + 4));
    const Factors step = Step(Reference(), c, Place::kEnd);
    c.mass = step.mass;
    c.first = false;
    for (auto& token : held) {
      for (size_t j = 0; j < 4; ++j) token[j] *= static_cast<double>(step.a[j]);
    }
    held.emplace_back(step.b.begin(), step.b.end());
  }
  for (size_t j = 0; j < 4; ++j) {
    double total = 0;
    for (size_t t = 0; t < kTokens; ++t) total += std::exp(static_cast<double>(logits[4 * t + j]));
    for (size_t t = 0; t < kTokens; ++t) {
      EXPECT_NEAR(held[t][j], std::exp(static_cast<double>(logits[4 * t + j])) / total, 2 * kTokens * 10 * kU);
    }
    EXPECT_NEAR(c.mass[j], std::log(total), kTokens * 8 * kU);
  }
}

// What every token leaves in every slot [T, n] after all of them were written in blocks.
Floats SharesOfBlocks(const Kernels& table, const Case& c, size_t block, Place place) {
  const size_t n = c.slots, stride = n + 3;
  Buffer<float> logits(Strided(c.logits, n, stride), place), mass(Floats(n, 0.0f), place), top(Floats(n, 0.0f), place);
  Floats shares;
  for (size_t first = 0; first < c.tokens; first += block) {
    const size_t count = std::min(block, c.tokens - first);
    SlotControlArgs args = Args(c, logits.data() + first * stride, stride, mass.data());
    args.tokens = count;
    args.tokens_seen = first;
    Buffer<float> carry(n, place), weight(count * n, place);
    table.abc_block(args, top.data(), carry.data(), weight.data());
    for (size_t i = 0; i < shares.size(); ++i) shares[i] *= carry.data()[i % n];
    for (const float w : weight.values()) {
      EXPECT_LE(w, 1.0f);
      shares.push_back(w);
    }
  }
  return shares;
}

// MATH 1.8.1, encoder: phi_i = alpha_i / sum of alpha over all positions, however they are cut; with exp for logits of any size. A
// block rounds a difference of logits (104 u in the exponential, as above), a sum, and a quotient, and so does the carry of every
// block after it.
TEST(SlotAbc, BlocksAreASoftmaxOverPositions) {
  ForEachTable([](const Kernels& kernels) {
    Random random(6);
    for (const SlotActivation activation : {SlotActivation::kExp, SlotActivation::kRelu, SlotActivation::kSigmoid}) {
      for (const float range : {6.0f, 80.0f, 2000.0f}) {
        for (const size_t block : {1, 7, 64}) {
          Case c = {};
          c.activation = activation;
          c.clamp = HUGE_VALF;
          Fill(c, random, 50, 1 + block % 37, range);
          for (size_t t = 0; t < c.tokens; ++t) c.logits[t * c.slots] = -range;  // of relu: a slot that stays empty
          const Floats shares = SharesOfBlocks(kernels, c, block, block == 7 ? Place::kShifted : Place::kEnd);
          const double blocks = std::ceil(50.0 / static_cast<double>(block));
          const double u = (blocks + 1) * (104 + 50 + 12) * kU;
          for (size_t j = 0; j < c.slots; ++j) {
            double top = 0, total = 0;
            for (size_t t = 0; t < c.tokens; ++t) top = std::fmax(t == 0 ? -HUGE_VAL : top, c.logits[t * c.slots + j]);
            const auto control = [&](size_t t) {
              const double s = c.logits[t * c.slots + j];
              if (activation == SlotActivation::kExp) return std::exp(s - top);
              return activation == SlotActivation::kRelu ? std::fmax(s, 0.0) : 1 / (1 + std::exp(-s));
            };
            for (size_t t = 0; t < c.tokens; ++t) total += control(t);
            for (size_t t = 0; t < c.tokens; ++t) {
              const double expected = total > 0 ? control(t) / total : 0.0;
              EXPECT_NEAR(shares[t * c.slots + j], expected, u * expected + 1e-37) << t << " " << j << " of " << c.slots;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
