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
  ExpectElementwise("softplus_gate, decay",
                    [](const Kernels& t, float* x, float* y) { t.softplus_gate(kWidth, x, 1, 2.0f, y, nullptr); });
  ExpectElementwise("softplus_gate, log_decay",
                    [](const Kernels& t, float* x, float* y) { t.softplus_gate(kWidth, x, 1, 2.0f, nullptr, y); });
  ExpectElementwise("step_gate, step", [](const Kernels& t, float* x, float* y) {
    Floats log_decay(kWidth);
    t.step_gate(kWidth, x, 1, 2.0f, 0.5f, 3.0f, y, log_decay.data());
  });
  ExpectElementwise("step_gate, log_decay", [](const Kernels& t, float* x, float* y) {
    Floats step(kWidth);
    t.step_gate(kWidth, x, 1, 2.0f, 0.5f, 3.0f, step.data(), y);
  });
  ExpectElementwise("tied_gate, decay", [](const Kernels& t, float* x, float* y) {
    Floats key(kWidth);
    t.tied_gate(kWidth, x, nullptr, y, key.data());
  });
  ExpectElementwise("tied_gate, key", [](const Kernels& t, float* x, float* y) {
    Floats decay(kWidth);
    t.tied_gate(kWidth, x, nullptr, decay.data(), y);
  });
  ExpectElementwise("sigmoid_gate", [](const Kernels& t, float* x, float* y) { t.sigmoid_gate(kWidth, x, -0.6f, y); });
  ExpectElementwise("scaled_sigmoid", [](const Kernels& t, float* x, float* y) { t.scaled_sigmoid(kWidth, x, 1, 2.0f, y); });
}

TEST(Nan, Activations) {
  ExpectElementwise("relu", [](const Kernels& t, float* x, float* y) { t.relu(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("gelu", [](const Kernels& t, float* x, float* y) { t.gelu(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("gelu_tanh", [](const Kernels& t, float* x, float* y) { t.gelu_tanh(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("tanh", [](const Kernels& t, float* x, float* y) { t.tanh(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("silu", [](const Kernels& t, float* x, float* y) { t.silu(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("relu_squared", [](const Kernels& t, float* x, float* y) { t.relu_squared(1, kWidth, x, kWidth, y, kWidth); });
  ExpectElementwise("soft_cap", [](const Kernels& t, float* x, float* y) { t.soft_cap(1, kWidth, x, kWidth, 3.0f, y, kWidth); });
  const Floats ones(kWidth, 1.0f);
  ExpectElementwise("gelu_mul, gate", [&](const Kernels& t, float* x, float* y) {
    t.gelu_mul(1, kWidth, x, kWidth, ones.data(), kWidth, y, kWidth);
  });
  ExpectElementwise("gelu_tanh_mul, gate", [&](const Kernels& t, float* x, float* y) {
    t.gelu_tanh_mul(1, kWidth, x, kWidth, ones.data(), kWidth, y, kWidth);
  });
  ExpectElementwise("sigmoid_mul, gate", [&](const Kernels& t, float* x, float* y) {
    t.sigmoid_mul(1, kWidth, x, kWidth, ones.data(), kWidth, y, kWidth);
  });
  ExpectElementwise("mul",
                    [&](const Kernels& t, float* x, float* y) { t.mul(1, kWidth, x, kWidth, ones.data(), kWidth, y, kWidth); });
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
      const FeatureMapInfo& info = kFeatureMaps[map];
      const bool projects = info.projection != Projection::kNone;
      const size_t features = info.features({kDim, projects ? kWidth : 0, /*nu=*/1});
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
        EXPECT_EQ(nans(0), 0) << info.name << ", x " << at;
        EXPECT_GE(nans(1), projects ? static_cast<ptrdiff_t>(features) : 1) << info.name << ", x " << at;
        EXPECT_EQ(std::isnan(log_weight[1]), info.log_weights) << info.name << ", x " << at;
        EXPECT_FALSE(std::isnan(log_weight[0])) << info.name << ", x " << at;
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
    args.attributes.logit_min = -2.0f;
    args.attributes.logit_max = 2.0f;
    args.attributes.gate_normalizer = 16.0f;
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
  // Slots of the other controls may compete for a token, and share its NaN.
  const bool alone = control == SlotControl::kAbcMlp || control == SlotControl::kGsa || control == SlotControl::kLunaCausal;
  const auto check = [&](const Kernels& table) {
    Controls c(which, 1, 0);
    table.slot_control_step[CausalPlace(control)](c.args, c.carry.data(), c.weight.data(), c.bias.data());
    EXPECT_TRUE(std::isnan(c.weight[kSlot]));
    if (alone) ExpectPoisoned("write", c.weight);
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
      EXPECT_FALSE(
          table.slot_control_chunk[CausalPlace(control)](c.args, c.carry.data(), c.gain.data(), c.weight.data(), c.bias.data()))
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
          args.attributes.activation = activation;
          args.attributes.normalization = normalization;
          args.attributes.mask_empty = mask_empty;
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
  for (size_t i = 0; i < kSlotControlCount; ++i) {
    const auto control = static_cast<SlotControl>(i);
    if (InfoOf(control).input != ControlInput::kLogits || control == SlotControl::kAbcMlp) continue;
    SCOPED_TRACE(InfoOf(control).name);
    SlotControlArgs args = {};
    args.tokens_seen = 100;
    ExpectStep(control, args);
    ExpectNoChunk(control, args);
  }
}

// A log weight that is NaN is the write of its own token alone, and no maximum.
TEST(Nan, Maxima) {
  const auto check = [](const Kernels& table) {
    for (size_t at = 0; at < kWidth; ++at) {
      const Floats l = Poisoned(kWidth, at, 5);
      float m = -5.0f, m_of_block = -5.0f, carry;  // below all of them
      Floats log_decay(kWidth), write(kWidth), block(kWidth);
      table.running_max(kWidth, false, l.data(), &m, log_decay.data(), write.data());
      table.block_max(kWidth, false, l.data(), &m_of_block, &carry, block.data());
      float top = -5.0f;
      for (const float x : l) top = x > top ? x : top;
      EXPECT_EQ(m, top);
      EXPECT_EQ(m_of_block, top);
      EXPECT_FALSE(std::isnan(carry));
      for (size_t i = 0; i < kWidth; ++i) {
        EXPECT_EQ(std::isnan(write[i]), i == at) << at << " " << i;
        EXPECT_EQ(std::isnan(block[i]), i == at) << at << " " << i;
        EXPECT_FALSE(std::isnan(log_decay[i])) << at << " " << i;
      }
    }
    float m = kNan;
    const Floats l = {1.0f, 2.0f};
    Floats log_decay(2), write(2);
    table.running_max(2, false, l.data(), &m, log_decay.data(), write.data());
    EXPECT_TRUE(std::isnan(m) && std::isnan(write[0]) && std::isnan(write[1]));  // a state that is NaN stays so
  };
  check(Reference());
  ForEachTable(check);
}

// A slot whose mean is NaN is nearest to nothing; a key that is NaN has no nearest slot and goes to the first. The other slots keep
// what they have.
TEST(Nan, ClustersAroundIt) {
  constexpr size_t kDim = 5;
  const auto check = [](const Kernels& table) {
    Random random(6);
    const Floats numbers = random.Uniform(kDim * kWidth, -1.0f, 1.0f), k = Poisoned(kDim, 3, 7);
    for (const bool key_is_nan : {false, true}) {
      Floats keys = numbers, mass(kWidth, 2.0f), key(kDim, 0.1f), decay(kWidth), write(kWidth), bias(kWidth);
      if (key_is_nan) key = k;
      if (!key_is_nan) {  // the mean that would be chosen
        for (size_t x = 0; x < kDim; ++x) keys[x * kWidth + kSlot] = 0.1f;
        keys[2 * kWidth + kSlot] = kNan;
      }
      SlotControlArgs args = {};
      args.tokens = 1;
      args.slots = kWidth;
      args.tokens_seen = 1000;
      args.k = key.data();
      args.keys = keys.data();
      args.key_dim = kDim;
      args.mass = mass.data();
      table.slot_control_step[CausalPlace(SlotControl::kClusteringOnline)](args, decay.data(), write.data(), bias.data());
      size_t written = 0;
      for (size_t j = 0; j < kWidth; ++j) {
        EXPECT_EQ(mass[j], write[j] > 0.0f ? 3.0f : 2.0f) << j;
        written += write[j] > 0.0f ? 1 : 0;
      }
      EXPECT_EQ(written, 1u);
      EXPECT_EQ(write[kSlot], 0.0f);
      EXPECT_TRUE(!key_is_nan || write[0] > 0.0f);
    }
  };
  check(Reference());
  ForEachTable(check);
}

// A NaN in a row of the schedule is the write of its slot.
TEST(Nan, Schedule) {
  const auto check = [](const Kernels& table) {
    const Floats schedule = Poisoned(kWidth, kSlot, 8);
    SlotControlArgs args = {};
    args.tokens = 1;
    args.slots = kWidth;
    args.schedule = schedule.data();
    Floats decay(kWidth), write(kWidth), bias(kWidth);
    table.slot_control_step[CausalPlace(SlotControl::kLinformer)](args, decay.data(), write.data(), bias.data());
    ExpectPoisoned("write", write);
  };
  check(Reference());
  ForEachTable(check);
}

}  // namespace
}  // namespace tarn::testing
