// The controls of slot memory other than ABC-MLP's: every table against the reference, the reference against the definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/kernels/slot_control_case.h"

namespace tarn::testing {
namespace {

// ABC-MLP's has a file of its own: slot_abc_test.cc.
std::vector<SlotControl> Others() {
  std::vector<SlotControl> controls = CausalControls();
  controls.erase(std::remove(controls.begin(), controls.end(), SlotControl::kAbcMlp), controls.end());
  return controls;
}

TEST(SlotControl, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const SlotControl control : Others()) {
      for (const size_t slots : Sizes()) {
        for (const uint64_t seen : Seen(control)) {
          for (const float range : {3.0f, 1000.0f}) {
            Case c(random, control, 1, slots, seen, range);
            c.attributes.mask_empty = slots % 2 == 0;
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
    for (const SlotControl control : Others()) {
      for (size_t slots = 1; slots <= 35; ++slots) {
        for (const uint64_t seen : Seen(control)) {
          Case c(random, control, 1 + (slots * 7) % 20, slots, seen, slots % 3 == 0 ? 30.0f : 4.0f);
          c.attributes.mask_empty = slots % 2 == 0;
          const Place place = slots % 4 < 2 ? Place::kEnd : Place::kShifted;
          const Factors expected = Chunk(Reference(), c, place);
          EXPECT_TRUE(InfoOf(control).chunks || !expected.fits);
          Compare(c, expected, Chunk(kernels, c, place));
        }
      }
    }
  });
}

// Positions have 32 bits and no sign; tokens go on behind the last of them.
TEST(SlotControl, GlobalPositionsEndAt32Bits) {
  ForEachTable([](const Kernels& kernels) {
    Random random(13);
    for (const uint32_t second : {0x80000000u, UINT32_MAX}) {
      Case c(random, SlotControl::kGlobal, 3, 2, second - uint64_t{1}, 1.0f);
      c.positions = {5, second};
      const Factors chunk = Chunk(kernels, c, Place::kEnd);
      ExpectEqual("weight", {0, 0, 0, 1, 0, 0}, chunk.c);
      ExpectEqual("bias", {0, -HUGE_VALF, 0, 0, 0, 0}, chunk.bias);
      c.tokens_seen = second;
      ExpectEqual("write", {0, 1}, Step(kernels, c, Place::kEnd).b);
      c.tokens_seen = uint64_t{second} + 1;
      ExpectEqual("write", {0, 0}, Step(kernels, c, Place::kEnd).b);
    }
  });
}

double Softplus2(double x) { return x > 30.0 ? x : std::log2(1.0 + std::exp2(x)); }

double Forget(const Case& c, double x) {
  return std::pow(1.0 / (1.0 + std::exp(-x)), 1.0 / static_cast<double>(c.attributes.gate_normalizer));
}

size_t Pool(const Case& c, size_t t) { return c.slots * t / static_cast<size_t>(c.attributes.max_len); }

// How much of token i slot j holds after token t, as the papers have it (MATH 0.1 and the sections named in slot_memory.h).
// Controls that are not here have golden files.
std::optional<double> Held(const Case& c, size_t t, size_t i, size_t j) {
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
    case SlotControl::kLunaCausal:
      return Softplus2(logit) / static_cast<double>(t + 1);
    default:
      return std::nullopt;
  }
}

TEST(SlotControl, ReferenceIsTheDefinition) {
  Random random(8);
  constexpr size_t kTokens = 23, kSlots = 6;
  for (const SlotControl control : Others()) {
    Case c(random, control, kTokens, kSlots, 0, 5.0f);
    if (!Held(c, 0, 0, 0)) continue;
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
          const double defined = *Held(c, t, i, j);
          EXPECT_NEAR(held[i][j], defined, 100 * kU * std::fmax(1.0, std::fabs(defined))) << t << " " << i << " " << j;
        }
        EXPECT_EQ(step.bias[j], written ? 0.0f : -HUGE_VALF) << InfoOf(control).name << " " << t << " " << j;
      }
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
