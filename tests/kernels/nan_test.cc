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

constexpr size_t kSlot = 21;

enum class Form { kStep, kChunk, kBlock };

// [tokens, kWidth] and then [kWidth]: the sum of all that a control makes of a slot up to a token, and the slot's mass. The logit
// of `token` for kSlot is NaN.
Floats Control(const Kernels& table, SlotControl control, SlotControlArgs args, Form form, size_t tokens, size_t token) {
  const size_t n = tokens * kWidth, kind = static_cast<size_t>(control);
  const Floats logits = Poisoned(n, token * kWidth + kSlot, 4);
  Floats mass(kWidth, args.tokens_seen == 0 ? 0.0f : 1.5f), top(kWidth, 0.5f);
  Floats carry(n), gain(n, 1.0f), weight(n), bias(n);
  args.tokens = tokens;
  args.slots = kWidth;
  args.logits = logits.data();
  args.logit_stride = kWidth;
  args.clamp_min = -2.0f;
  args.clamp_max = 2.0f;
  args.gate_normalizer = 16.0f;
  args.mass = mass.data();
  if (form == Form::kStep) table.slot_control_step[kind](args, carry.data(), weight.data(), bias.data());
  if (form == Form::kChunk && !table.slot_control_chunk[kind](args, carry.data(), gain.data(), weight.data(), bias.data())) {
    return {};  // steps are taken
  }
  if (form == Form::kBlock) table.abc_block(args, top.data(), carry.data(), weight.data());
  Floats made(n);
  for (size_t j = 0; j < kWidth; ++j) {
    float sum = 0.0f;
    for (size_t t = 0; t < tokens; ++t) {
      sum += weight[t * kWidth + j];
      made[t * kWidth + j] = carry[t * kWidth + j] + gain[t * kWidth + j] * sum + bias[t * kWidth + j];
    }
  }
  made.insert(made.end(), mass.begin(), mass.end());
  return made;
}

// NaN from that token on, in that slot alone; in a block, which has no order, at its end.
void ExpectControl(SlotControl control, const SlotControlArgs& args, bool has_mass, Form form) {
  const size_t tokens = form == Form::kStep ? 1 : kTokens;
  const auto check = [&](const Kernels& table) {
    for (size_t token = 0; token < tokens; ++token) {
      const Floats made = Control(table, control, args, form, tokens, token);
      for (size_t i = 0; i < made.size(); ++i) {
        const size_t at = i / kWidth;
        if (form == Form::kBlock && at + 1 < tokens) continue;
        const bool poisoned = i % kWidth == kSlot && (at < tokens ? at >= token : has_mass);
        EXPECT_EQ(std::isnan(made[i]), poisoned)
            << "form " << static_cast<int>(form) << ", NaN at token " << token << ", activation "
            << static_cast<int>(args.activation) << ", normalization " << static_cast<int>(args.normalization) << ", row " << at
            << ", slot " << i % kWidth;
      }
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
          SlotControlArgs args = {};
          args.activation = activation;
          args.normalization = normalization;
          args.mask_empty = mask_empty;
          args.tokens_seen = seen;
          for (const Form form : {Form::kStep, Form::kChunk, Form::kBlock}) ExpectControl(SlotControl::kAbcMlp, args, true, form);
        }
      }
    }
  }
}

// Those of GSA look ahead in a chunk, and take steps instead.
TEST(Nan, GatedControls) {
  for (const SlotControl control : {SlotControl::kGsa, SlotControl::kLunaCausal}) {
    SlotControlArgs args = {};
    args.tokens_seen = 100;
    for (const Form form : {Form::kStep, Form::kChunk}) ExpectControl(control, args, false, form);
  }
}

}  // namespace
}  // namespace tarn::testing
