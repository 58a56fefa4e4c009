// Gates and the running maximum of every table against the reference, the reference against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// Ordinary logits, and such that saturate on either side.
Floats Logits(Random& random, size_t n) {
  constexpr float kSpecial[] = {0.0f, -0.0f, 1e-40f, -1e-40f, 1e3f, -1e3f, 88.0f, -88.0f, -104.5f, 30.0f, -30.0f, 1e-20f};
  Floats logits = random.Uniform(n, -20.0f, 20.0f);
  for (size_t i = 0; i < n; i += 1 + i % 5) logits[i] = kSpecial[i % (sizeof(kSpecial) / sizeof(float))];
  return logits;
}

// Sigmoid: exp 2, sum and quotient 2, oracle 1. Softplus: exp 2, log1p 4 (2 ulp), sum 1, oracle 1.
TEST(Gate, ForgetGate) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(7);
    for (const size_t n : Sizes()) {
      for (const size_t stride : {1, 5}) {
        const Floats a = Logits(random, n);
        Buffer<float> logits(Strided(a, 1, stride), Place::kEnd);
        const auto run = [&](const Kernels& table, int output) {
          Buffer<float> y(n, Place::kEnd);
          table.forget_gate(n, logits.data(), stride, output == 0 ? y.data() : nullptr, output == 1 ? y.data() : nullptr,
                            output == 2 ? y.data() : nullptr);
          return y.values();
        };
        for (int output = 0; output < 3; ++output) {
          const Floats expected = run(Reference(), output);
          ExpectNear(output == 0   ? "decay"
                     : output == 1 ? "write"
                                   : "log_decay",
                     expected, run(kernels, output),
                     [&](size_t i) { return (output == 2 ? 8 : 5) * kU * std::fabs(expected[i]) + kTiny; });
        }
        const auto all = [&](const Kernels& table) {  // all three at once
          Buffer<float> y(3 * n, Place::kEnd);
          table.forget_gate(n, logits.data(), stride, y.data(), y.data() + n, y.data() + 2 * n);
          return y.values();
        };
        Floats expected;
        for (int output = 0; output < 3; ++output) {
          for (const float value : run(kernels, output)) expected.push_back(value);
        }
        ExpectEqual("outputs together", expected, all(kernels));
      }
    }
  });
}

// The logarithm y is off by 10 u (log sigmoid 8, quotient 1, oracle 1), which exp turns into 10 u |y|; exp 2, oracle 1.
TEST(Gate, VectorGate) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(2);
    for (const size_t n : Sizes()) {
      for (const float normalizer : {1.0f, 16.0f}) {
        for (const float clamp_min : {-HUGE_VALF, -0.2f}) {
          const Place place = normalizer > 1.0f ? Place::kEnd : Place::kShifted;
          Buffer<float> logits(Logits(random, n), place);
          const auto run = [&](const Kernels& table) {
            Buffer<float> decay(n, place);
            table.vector_gate(n, logits.data(), normalizer, clamp_min, decay.data());
            return decay.values();
          };
          const Floats expected = run(Reference()), actual = run(kernels);
          ExpectNear("decay", expected, actual, [&](size_t i) {
            const double log_decay = expected[i] > 0.0f ? std::fabs(std::log(static_cast<double>(expected[i]))) : 104.0;
            return (10 * log_decay + 3) * kU * expected[i] + kTiny;
          });
          for (size_t i = 0; i < n; ++i) {
            if (logits.data()[i] < -700.0f) continue;  // where this form of the sigmoid is 0
            const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(logits.data()[i])));
            const double closed =
                std::fmax(std::pow(sigmoid, 1 / static_cast<double>(normalizer)), std::exp(static_cast<double>(clamp_min)));
            EXPECT_NEAR(expected[i], closed, 2 * kU * closed + kTiny);
          }
        }
      }
    }
  });
}

// The logarithm: exp 2, log1p 4, sum 1, product 1, oracle 1. The decay is exp of that: 9 u |log|, exp 2, oracle 1.
TEST(Gate, SoftplusGate) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(4);
    for (const size_t n : Sizes()) {
      for (const size_t stride : {1, 5}) {
        const float rate = stride == 1 ? 0.125f : 11.5f;
        const Floats a = Logits(random, n);
        Buffer<float> logits(Strided(a, 1, stride), Place::kEnd);
        const auto run = [&](const Kernels& table, bool log) {
          Buffer<float> y(n, Place::kEnd);
          table.softplus_gate(n, logits.data(), stride, rate, log ? nullptr : y.data(), log ? y.data() : nullptr);
          return y.values();
        };
        const Floats log_decay = run(Reference(), true), decay = run(Reference(), false);
        const double tiny = kTiny * (1.0 + static_cast<double>(rate));
        ExpectNear("log_decay", log_decay, run(kernels, true), [&](size_t i) { return 9 * kU * std::fabs(log_decay[i]) + tiny; });
        ExpectNear("decay", decay, run(kernels, false),
                   [&](size_t i) { return (9 * std::fabs(log_decay[i]) + 3) * kU * decay[i] + kTiny; });
        for (size_t i = 0; i < n; ++i) {
          const double x = a[i], softplus = x > 30 ? x : std::log1p(std::exp(x));
          EXPECT_NEAR(log_decay[i], -static_cast<double>(rate) * softplus, 2 * kU * std::fabs(log_decay[i]) + tiny);
        }
        Buffer<float> both(2 * n, Place::kEnd);
        kernels.softplus_gate(n, logits.data(), stride, rate, both.data(), both.data() + n);
        Floats expected = run(kernels, false);
        for (const float value : run(kernels, true)) expected.push_back(value);
        ExpectEqual("outputs together", expected, both.values());
      }
    }
  });
}

// The step: as the logarithm above without its product, 8; its product with the rate 1 more. Where it is clamped it is exact.
TEST(Gate, StepGate) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(5);
    for (const size_t n : Sizes()) {
      for (const size_t stride : {1, 5}) {
        const float rate = stride == 1 ? 0.125f : 11.5f, least = stride == 1 ? 0.0f : 0.25f, most = stride == 1 ? HUGE_VALF : 3.5f;
        const Floats a = Logits(random, n);
        Buffer<float> logits(Strided(a, 1, stride), Place::kEnd);
        const auto run = [&](const Kernels& table) {
          Buffer<float> step(n, Place::kEnd), log_decay(n, Place::kShifted);
          table.step_gate(n, logits.data(), stride, rate, least, most, step.data(), log_decay.data());
          return std::pair{step.values(), log_decay.values()};
        };
        const auto [step, log_decay] = run(Reference());
        const auto [actual_step, actual_log] = run(kernels);
        ExpectNear("step", step, actual_step, [&, &steps = step](size_t i) { return 8 * kU * steps[i] + kTiny; });
        ExpectNear("log_decay", log_decay, actual_log, [&, &logs = log_decay](size_t i) {
          return 9 * kU * std::fabs(logs[i]) + kTiny * (1.0 + static_cast<double>(rate));
        });
        for (size_t i = 0; i < n; ++i) {
          const double x = a[i], softplus = x > 30 ? x : std::log1p(std::exp(x));
          const double closed = std::fmin(std::fmax(softplus, static_cast<double>(least)), static_cast<double>(most));
          EXPECT_NEAR(step[i], closed, 2 * kU * closed + kTiny);
          EXPECT_GE(actual_step[i], least);
          EXPECT_LE(actual_step[i], most);
        }
      }
    }
  });
}

// Sigmoid 4; 1 - b, product and sum 3, oracle 1: of terms that are all positive.
TEST(Gate, TiedGate) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(6);
    for (const size_t n : Sizes()) {
      for (const bool bounded : {false, true}) {
        Buffer<float> logits(Logits(random, n), Place::kEnd), bounds(random.Uniform(n, 0.0f, 1.0f), Place::kShifted);
        const auto run = [&](const Kernels& table, bool in_place) {
          Buffer<float> decay(n, Place::kEnd), key(in_place ? logits.values() : Floats(n), Place::kEnd);
          table.tied_gate(n, in_place ? key.data() : logits.data(), bounded ? bounds.data() : nullptr, decay.data(), key.data());
          return std::pair{decay.values(), key.values()};
        };
        const auto [decay, key] = run(Reference(), false);
        const auto [actual_decay, actual_key] = run(kernels, false);
        ExpectNear("decay", decay, actual_decay, [&, &all = decay](size_t i) { return 8 * kU * all[i] + kTiny; });
        ExpectNear("key", key, actual_key, [&, &all = key](size_t i) { return 7 * kU * all[i] + kTiny; });
        EXPECT_EQ(run(kernels, true), run(kernels, false));
        for (size_t i = 0; i < n; ++i) EXPECT_NEAR(1.0 - decay[i], key[i], 2 * kU);
      }
    }
  });
}

// The logarithm: sigmoid 4, product 1, oracle 1. The decay is exp of that: 6 u |log|, exp 2, oracle 1.
TEST(Gate, SigmoidGate) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(8);
    for (const size_t n : Sizes()) {
      Buffer<float> logits(Logits(random, n), Place::kEnd);
      for (const float least : {-0.60653066f, -12.0f}) {
        const auto run = [&](const Kernels& table) {
          Buffer<float> decay(n, Place::kEnd);
          table.sigmoid_gate(n, logits.data(), least, decay.data());
          return decay.values();
        };
        const Floats expected = run(Reference());
        ExpectNear("decay", expected, run(kernels), [&](size_t i) {
          return (6 * std::fabs(std::log(static_cast<double>(expected[i]))) + 3) * kU * expected[i] + kTiny;
        });
        for (const float decay : expected) EXPECT_TRUE(decay >= std::exp(least) * 0.999999f && decay <= 1.0f) << decay;
      }
    }
  });
}

// Exp 2, sum, quotient and product 3, oracle 1.
TEST(Gate, ScaledSigmoid) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(3);
    for (const size_t n : Sizes()) {
      for (const size_t stride : {1, 5}) {
        Buffer<float> logits(Strided(Logits(random, n), 1, stride), stride == 1 ? Place::kShifted : Place::kEnd);
        const auto run = [&](const Kernels& table) {
          Buffer<float> y(n, Place::kEnd);
          table.scaled_sigmoid(n, logits.data(), stride, 2.0f, y.data());
          return y.values();
        };
        const Floats expected = run(Reference());
        ExpectNear("y", expected, run(kernels), [&](size_t i) { return 6 * kU * expected[i] + 2 * kTiny; });
      }
    }
  });
}

struct Weights {
  Floats log_decay, write;
  float m;
};

// The log weights in pieces of at most `chunk`.
Weights RunningMaximum(const Kernels& table, const Floats& log_weight, size_t chunk) {
  Buffer<float> in(log_weight, Place::kEnd), m(1, Place::kEnd), log_decay(in.size(), Place::kEnd),
      write(in.size(), Place::kShifted);
  for (size_t first = 0; first < in.size(); first += chunk) {
    table.running_max(std::min(chunk, in.size() - first), first == 0, in.data() + first, m.data(), log_decay.data() + first,
                      write.data() + first);
  }
  return {log_decay.values(), write.values(), m.data()[0]};
}

// MATH 1.2.3: what token i wrote has at token t the weight exp(l_i - max(l_1 .. l_t)), whatever the order of magnitude of l, and
// however the tokens are cut.
TEST(Gate, RunningMaxStreams) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(4);
    for (const float range : {1.0f, 50.0f, 3e4f}) {
      const Floats log_weight = random.Uniform(40, -range, range);
      const Weights whole = RunningMaximum(kernels, log_weight, log_weight.size());
      EXPECT_EQ(whole.log_decay[0], 0.0f);
      EXPECT_EQ(whole.write[0], 1.0f);
      EXPECT_EQ(whole.m, *std::max_element(log_weight.begin(), log_weight.end()));
      for (size_t t = 0; t < log_weight.size(); ++t) {
        const double top = *std::max_element(log_weight.begin(), log_weight.begin() + static_cast<ptrdiff_t>(t) + 1);
        double left = 0;  // sum of log_decay after i
        for (size_t i = t + 1; i-- > 0; left += whole.log_decay[i]) {
          const double expected = std::exp(log_weight[i] - top);
          // A difference of numbers below `range` is rounded once per token, and once before the exponential.
          const double u = std::expm1(2 * static_cast<double>(t + 1) * static_cast<double>(range) * kU) + 2 * kU;
          EXPECT_NEAR(whole.write[i] * std::exp(left), expected, u * expected + kTiny) << i << " " << t;
        }
      }
      for (const size_t chunk : {1, 7, 16}) {
        const Weights pieces = RunningMaximum(kernels, log_weight, chunk);
        ExpectEqual("log_decay", whole.log_decay, pieces.log_decay);
        ExpectEqual("write", whole.write, pieces.write);
        EXPECT_EQ(whole.m, pieces.m);
      }
    }
  });
}

// The same maximum for blocks: what token i left after all of them has the weight exp(l_i - max(l)), a product of one exponential
// for its own block and one for each later one.
TEST(Gate, BlockMaxStreams) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(5);
    for (const float range : {1.0f, 50.0f, 3e4f}) {
      const Floats log_weight = random.Uniform(40, -range, range);
      const double top = *std::max_element(log_weight.begin(), log_weight.end());
      for (const size_t block : {1, 7, 40}) {
        Buffer<float> in(log_weight, Place::kEnd), write(log_weight.size(), Place::kShifted), m(1, Place::kEnd);
        std::vector<double> left;
        for (size_t first = 0; first < log_weight.size(); first += block) {
          const size_t count = std::min(block, log_weight.size() - first);
          float carry = -1;
          kernels.block_max(count, first == 0, in.data() + first, m.data(), &carry, write.data() + first);
          EXPECT_LE(carry, 1.0f);
          for (double& weight : left) weight *= static_cast<double>(carry);
          for (size_t t = first; t < first + count; ++t) left.push_back(write.data()[t]);
        }
        EXPECT_EQ(m.data()[0], static_cast<float>(top));
        for (size_t i = 0; i < left.size(); ++i) {
          const double expected = std::exp(log_weight[i] - top);
          // Differences are rounded once; they add up to top - l_i, and above 104 nothing is left. 2u for every exponential, 1u for
          // every product.
          EXPECT_NEAR(left[i], expected, (104 + 41 * 3) * kU * expected + 2 * kTiny) << i << " in blocks of " << block;
        }
      }
    }
  });
}

// Both maxima, log decays and the state to the bit, as they are made of comparisons and one subtraction. A weight's difference is
// rounded once, 2u are its exponential's, and 1u the reference's.
TEST(Gate, MaximaOfEveryTable) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(6);
    for (const size_t n : Sizes()) {
      for (const bool first : {false, true}) {
        const Place place = n % 2 == 0 ? Place::kEnd : Place::kShifted;
        const Floats log_weight = random.Uniform(n, -20.0f, 20.0f);
        const float before = random.Uniform(-20.0f, 20.0f);
        struct Made {
          float m, carry;
          Floats log_decay, running, block;
        };
        const auto run = [&](const Kernels& table) {
          Buffer<float> in(log_weight, place), log_decay(n, place), running(n, place), block(n, place);
          float m = before, m_of_block = before, carry = -1.0f;
          table.running_max(n, first, in.data(), &m, log_decay.data(), running.data());
          table.block_max(n, first, in.data(), &m_of_block, &carry, block.data());
          EXPECT_EQ(m, m_of_block);
          return Made{m, carry, log_decay.values(), running.values(), block.values()};
        };
        const Made expected = run(Reference()), actual = run(kernels);
        EXPECT_EQ(expected.m, actual.m);
        ExpectEqual("log_decay", expected.log_decay, actual.log_decay);
        const auto bound = [](float e) { return (40 + 3) * kU * static_cast<double>(e) + 2 * kTiny; };  // differences below 40
        EXPECT_NEAR(expected.carry, actual.carry, bound(expected.carry));
        ExpectNear("write", expected.running, actual.running, [&](size_t i) { return bound(expected.running[i]); });
        ExpectNear("write of a block", expected.block, actual.block, [&](size_t i) { return bound(expected.block[i]); });
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
