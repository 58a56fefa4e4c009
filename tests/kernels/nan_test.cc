// A NaN stays one: what activations, gates, features and controls make of it is NaN, and nothing beside it is, in every table.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Nan, Activations) {
  ExpectElementwise("relu", [](const Kernels& t, float* x, float* y) { t.relu(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("gelu", [](const Kernels& t, float* x, float* y) { t.gelu(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("gelu_tanh", [](const Kernels& t, float* x, float* y) { t.gelu_tanh(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("tanh", [](const Kernels& t, float* x, float* y) { t.tanh(1, kWidth, x, kWidth, y, kWidth); });
  const Floats ones(kWidth, 1.0f);
  ExpectElementwise("silu_mul, gate", [&](const Kernels& t, float* x, float* y) {
    t.silu_mul(1, kWidth, x, kWidth, ones.data(), kWidth, y, kWidth);
  });
  ExpectElementwise("silu_mul, up", [&](const Kernels& t, float* x, float* y) {
    t.silu_mul(1, kWidth, ones.data(), kWidth, x, kWidth, y, kWidth);
  });
}

// The second of two rows of x holds one: all of its features are NaN where each meets all of x, else at least one; the first row's
// are numbers.
TEST(Nan, Features) {
  constexpr size_t kDim = 8, kMost = 2 * kWidth;  // features
  const auto check = [&](const Kernels& table) {
    for (size_t map = 0; map < kFeatureMapCount; ++map) {
      const bool projects = map != static_cast<size_t>(FeatureMap::kEluPlusOne) && map != static_cast<size_t>(FeatureMap::kDpfp) &&
                            map != static_cast<size_t>(FeatureMap::kIdentity);
      const size_t features = map == static_cast<size_t>(FeatureMap::kGaussian) ? 2 * kWidth
                              : map == static_cast<size_t>(FeatureMap::kDpfp)   ? 2 * kDim
                              : projects                                        ? kWidth
                                                                                : kDim;
      Random random(2);
      const Floats weight = random.Uniform(kDim * kWidth, -1.0f, 1.0f), bias = random.Uniform(kWidth, -1.0f, 1.0f);
      for (size_t at = 0; at < kDim; ++at) {
        const Floats x = Poisoned(2 * kDim, kDim + at, 3);
        Floats phi(2 * kMost), log_weight(2);
        FeatureArgs args = {};
        args.rows = 2;
        args.head_dim = kDim;
        args.projections = projects ? kWidth : 0;
        args.x = x.data();
        args.weight = projects ? weight.data() : nullptr;
        args.bias = bias.data();
        args.ratio = 1.0f;
        args.nu = 1;
        args.phi = phi.data();
        args.log_weight = log_weight.data();
        table.features[map](args);
        const auto nans = [&](size_t row) {
          return std::count_if(&phi[row * features], &phi[row * features] + features, [](float y) { return std::isnan(y); });
        };
        EXPECT_EQ(nans(0), 0) << "map " << map << ", x " << at;
        EXPECT_GE(nans(1), projects ? static_cast<ptrdiff_t>(features) : 1) << "map " << map << ", x " << at;
        EXPECT_EQ(std::isnan(log_weight[1]), map == static_cast<size_t>(FeatureMap::kPositive)) << "map " << map << ", x " << at;
        EXPECT_FALSE(std::isnan(log_weight[0])) << "map " << map << ", x " << at;
      }
    }
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
