// A NaN stays one: what gates, features and controls make of it is NaN wherever the reference's is, in every table.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kWidth = 37, kTokens = 6;  // of no vector a multiple

// Numbers, and a NaN at `poisoned`.
Floats Poisoned(size_t n, size_t poisoned, uint32_t seed) {
  Random random(seed);
  Floats x = random.Uniform(n, -3.0f, 3.0f);
  x[poisoned] = kNan;
  return x;
}

// f(table, input, output) element by element: NaN there and nowhere else.
template <typename F>
void ExpectElementwise(const std::string& what, const F& f) {
  const auto check = [&](const Kernels& table) {
    for (size_t at = 0; at < kWidth; ++at) {
      Floats x = Poisoned(kWidth, at, 1), y(kWidth);
      f(table, x.data(), y.data());
      for (size_t i = 0; i < kWidth; ++i) EXPECT_EQ(std::isnan(y[i]), i == at) << what << ", element " << i << ": " << y[i];
    }
  };
  check(Reference());
  ForEachTable(check);
}

TEST(Nan, Gates) {
  ExpectElementwise("decay", [](const Kernels& t, float* x, float* y) { t.forget_gate(kWidth, x, 1, y, nullptr, nullptr); });
  ExpectElementwise("write", [](const Kernels& t, float* x, float* y) { t.forget_gate(kWidth, x, 1, nullptr, y, nullptr); });
  ExpectElementwise("log_decay", [](const Kernels& t, float* x, float* y) { t.forget_gate(kWidth, x, 1, nullptr, nullptr, y); });
  ExpectElementwise("vector_gate", [](const Kernels& t, float* x, float* y) { t.vector_gate(kWidth, x, 16.0f, -5.0f, y); });
  ExpectElementwise("scaled_sigmoid", [](const Kernels& t, float* x, float* y) { t.scaled_sigmoid(kWidth, x, 1, 2.0f, y); });
}

TEST(Nan, EluPlusOne) {
  ExpectElementwise("elu + 1", [](const Kernels& t, float* x, float* y) {
    FeatureArgs args = {};
    args.rows = 1;
    args.head_dim = kWidth;
    args.x = x;
    args.phi = y;
    t.features[static_cast<size_t>(FeatureMap::kEluPlusOne)](args);
  });
}

// One of two rows: all of its features, and what weighs them.
TEST(Nan, PositiveFeatures) {
  constexpr size_t kDim = 8;
  const auto check = [&](const Kernels& table) {
    Random random(2);
    const Floats weight = random.Uniform(kDim * kWidth, -1.0f, 1.0f);
    const Floats x = Poisoned(2 * kDim, kDim + 3, 3);
    Floats phi(2 * kWidth), log_weight(2);
    FeatureArgs args = {};
    args.rows = 2;
    args.head_dim = kDim;
    args.projections = kWidth;
    args.x = x.data();
    args.weight = weight.data();
    args.phi = phi.data();
    args.log_weight = log_weight.data();
    table.features[static_cast<size_t>(FeatureMap::kPositive)](args);
    for (size_t i = 0; i < phi.size(); ++i) EXPECT_EQ(std::isnan(phi[i]), i >= kWidth) << i;
    EXPECT_FALSE(std::isnan(log_weight[0]));
    EXPECT_TRUE(std::isnan(log_weight[1]));
  };
  check(Reference());
  ForEachTable(check);
}

// Logits [kTokens, kWidth] of which that of `token` for kSlot is NaN, and all that controls read and write beside them.
constexpr size_t kSlot = 21;

struct Controls {
  Controls(const SlotControlArgs& which, size_t tokens, size_t token)
      : logits(Poisoned(tokens * kWidth, token * kWidth + kSlot, 4)),
        mass(kWidth, which.tokens_seen == 0 ? 0.0f : 1.5f),
        args(which) {
    args.tokens = tokens;
    args.slots = kWidth;
    args.logits = logits.data();
    args.logit_stride = kWidth;
    args.clamp_min = -2.0f;
    args.clamp_max = 2.0f;
    args.gate_normalizer = 16.0f;
    args.mass = mass.data();
  }

  Floats logits, mass;
  Floats top = Floats(kWidth, 0.5f);
  Floats carry = Floats(kTokens * kWidth), gain = carry, weight = carry, bias = carry;
  SlotControlArgs args;
};

void ExpectPoisoned(const std::string& what, const Floats& made) {
  for (size_t j = 0; j < kWidth; ++j) EXPECT_EQ(std::isnan(made[j]), j == kSlot) << what << ", slot " << j << ": " << made[j];
}

// What a step writes.
void ExpectStep(SlotControl control, const SlotControlArgs& which) {
  const auto check = [&](const Kernels& table) {
    Controls c(which, 1, 0);
    table.slot_control_step[static_cast<size_t>(control)](c.args, c.carry.data(), c.weight.data(), c.bias.data());
    ExpectPoisoned("write", c.weight);
    if (control == SlotControl::kAbcMlp) ExpectPoisoned("mass", c.mass);
  };
  check(Reference());
  ForEachTable(check);
}

// A chunk, whose products would take the NaN to the tokens before it, is refused.
void ExpectNoChunk(SlotControl control, const SlotControlArgs& which) {
  const auto check = [&](const Kernels& table) {
    for (size_t token = 0; token < kTokens; ++token) {
      Controls c(which, kTokens, token);
      EXPECT_FALSE(table.slot_control_chunk[static_cast<size_t>(control)](c.args, c.carry.data(), c.gain.data(), c.weight.data(),
                                                                          c.bias.data()))
          << "token " << token;
    }
  };
  check(Reference());
  ForEachTable(check);
}

// All that a block, which has no order, writes into a slot.
void ExpectBlock(const SlotControlArgs& which) {
  const auto check = [&](const Kernels& table) {
    for (size_t token = 0; token < kTokens; ++token) {
      Controls c(which, kTokens, token);
      table.abc_block(c.args, c.top.data(), c.carry.data(), c.weight.data());
      Floats sum(kWidth);
      for (size_t i = 0; i < c.weight.size(); ++i) sum[i % kWidth] += c.weight[i];
      ExpectPoisoned("weights", sum);
      if (which.tokens_seen != 0) ExpectPoisoned("carry", Floats(c.carry.begin(), c.carry.begin() + kWidth));
      ExpectPoisoned("mass", c.mass);
    }
  };
  check(Reference());
  ForEachTable(check);
}

TEST(Nan, ControlsOfAbc) {
  for (const SlotActivation activation : {SlotActivation::kExp, SlotActivation::kRelu, SlotActivation::kSigmoid}) {
    for (const SlotNormalization normalization : {SlotNormalization::kRenorm, SlotNormalization::kFrozen}) {
      for (const bool mask_empty : {false, true}) {
        for (const uint64_t seen : {0u, 100u}) {
          SCOPED_TRACE(std::to_string(static_cast<int>(activation)) + " " + std::to_string(static_cast<int>(normalization)) + " " +
                       std::to_string(seen));
          SlotControlArgs args = {};
          args.activation = activation;
          args.normalization = normalization;
          args.mask_empty = mask_empty;
          args.tokens_seen = seen;
          ExpectStep(SlotControl::kAbcMlp, args);
          ExpectNoChunk(SlotControl::kAbcMlp, args);
          ExpectBlock(args);
        }
      }
    }
  }
}

TEST(Nan, GatedControls) {
  for (const SlotControl control : {SlotControl::kGsa, SlotControl::kLunaCausal}) {
    SlotControlArgs args = {};
    args.tokens_seen = 100;
    ExpectStep(control, args);
    ExpectNoChunk(control, args);
  }
}

}  // namespace
}  // namespace tarn::testing
