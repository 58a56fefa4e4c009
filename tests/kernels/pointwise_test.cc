// Norms, activations, embeddings and positions of every table against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// Ordinary values with zeros of both signs, denormals and large ones strewn in.
Floats Values(Random& random, size_t size, float range) {
  constexpr float kSpecial[] = {0.0f, -0.0f, 1e-40f, -1e-40f, 1e3f, -1e3f, 88.0f, -88.0f, -104.5f, 15.5f, -14.25f, 1e-20f};
  Floats values = random.Uniform(size, -range, range);
  for (size_t i = 0; i < size; i += 1 + i % 5) values[i] = kSpecial[i % (sizeof(kSpecial) / sizeof(float))];
  return values;
}

// One call of a kernel over rows, out of place and in place: f(x, x_stride, y, y_stride).
using RowCall = std::function<void(const float*, size_t, float*, size_t)>;
Floats RunRows(const Floats& x, size_t n, size_t gap, bool in_place, Place place, const RowCall& call) {
  const size_t rows = x.size() / n;
  Buffer<float> in(Strided(x, n, n + gap), place);
  if (in_place) {
    call(in.data(), n + gap, in.data(), n + gap);
    return Unstrided(in.values(), n, n + gap);
  }
  const size_t out_gap = gap == 0 ? 0 : gap + 2;
  Buffer<float> out(StridedSize(rows, n, n + out_gap), place);
  call(in.data(), n + gap, out.data(), n + out_gap);
  return Unstrided(out.values(), n, n + out_gap);
}

// Runs `call` of a table and of the reference over all sizes, strides and placements, and compares.
using TableCall =
    std::function<void(const Kernels&, size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride)>;
void CompareRows(float range, const TableCall& call, const std::function<double(float x, float y)>& bound) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(1);
    for (const size_t n : Sizes()) {
      for (const size_t gap : {0, 3}) {
        for (const Place place : {Place::kEnd, Place::kShifted}) {
          const size_t rows = 1 + n % 3;
          const Floats x = Values(random, rows * n, range);
          const auto run = [&](const Kernels& table, bool in_place) {
            return RunRows(x, n, gap, in_place, place, [&](const float* from, size_t from_stride, float* to, size_t to_stride) {
              call(table, rows, n, from, from_stride, to, to_stride);
            });
          };
          const Floats expected = run(Reference(), false);
          const auto limit = [&](size_t i) { return bound(x[i], expected[i]); };
          ExpectNear("y", expected, run(kernels, false), limit);
          ExpectNear("y in place", expected, run(kernels, true), limit);
        }
      }
    }
  });
}

TEST(Pointwise, ReluIsExact) {
  CompareRows(
      5.0f,
      [](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
        k.relu(rows, n, x, xs, y, ys);
      },
      [](float, float) { return 0.0; });
}

// Roundings of x Phi(x), in u: the fit 1, its argument and sum 4, two divisions 2, two exponentials 4, three products 3.
TEST(Pointwise, Gelu) {
  CompareRows(
      15.0f,
      [](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
        k.gelu(rows, n, x, xs, y, ys);
      },
      [](float x, float y) { return 14.0 * kU * std::fabs(y) + std::fabs(x) * kTiny; });
}

TEST(Pointwise, GelusOfLargeNumbersAreThemselves) {
  const Floats x = {16.0f, 1e30f, std::numeric_limits<float>::infinity()}, ones(x.size(), 1.0f);
  const size_t n = x.size();
  ForEachTable([&](const Kernels& k) {
    Floats y(n), product(n), of_tanh(n);
    k.gelu(1, n, x.data(), n, y.data(), n);
    k.gelu_mul(1, n, x.data(), n, ones.data(), n, product.data(), n);
    k.gelu_tanh(1, n, x.data(), n, of_tanh.data(), n);
    for (const Floats& found : {y, product, of_tanh}) EXPECT_EQ(found, x);
  });
}

// The argument z of the sigmoid carries three roundings, which the sigmoid magnifies by |z| sigmoid(-z); exp 2, sum, quotient,
// product 3.
TEST(Pointwise, GeluTanh) {
  CompareRows(
      10.0f,
      [](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
        k.gelu_tanh(rows, n, x, xs, y, ys);
      },
      [](float x, float y) {
        const double v = x;
        const double z = 1.5957691216057308 * (v + 0.044715 * v * v * v);
        const double magnified = z < 0 ? std::fabs(z) : z * std::exp(-z);
        return (7.0 + 3.0 * magnified) * kU * std::fabs(y) + std::fabs(v) * kTiny;
      });
}

// Highway's Tanh: at most 4 ulp, by its documentation.
TEST(Pointwise, Tanh) {
  CompareRows(
      10.0f,
      [](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
        k.tanh(rows, n, x, xs, y, ys);
      },
      [](float, float y) { return 8.0 * kU * std::fabs(y); });
}

// exp 2, sum, quotient and product 3, the oracle's own rounding 1
TEST(Pointwise, Silu) {
  CompareRows(
      20.0f,
      [](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
        k.silu(rows, n, x, xs, y, ys);
      },
      [](float x, float y) { return 6 * kU * std::fabs(y) + (1.0 + std::fabs(x)) * kTiny; });
}

TEST(Pointwise, ReluSquaredIsExact) {
  CompareRows(
      5.0f,
      [](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
        k.relu_squared(rows, n, x, xs, y, ys);
      },
      [](float, float) { return 0.0; });
}

// Quotient and product 2 beside Tanh. A quotient that is denormal is off by a part of kTiny, which the cap multiplies.
TEST(Pointwise, SoftCap) {
  for (const float cap : {1.5f, 50.0f}) {
    CompareRows(
        100.0f,
        [cap](const Kernels& k, size_t rows, size_t n, const float* x, size_t xs, float* y, size_t ys) {
          k.soft_cap(rows, n, x, xs, cap, y, ys);
        },
        [cap](float, float y) { return 11.0 * kU * std::fabs(y) + (1.0 + static_cast<double>(cap)) * kTiny; });
  }
}

// Sums of n: mean off by delta = n u mean|x|; 1/sqrt(variance) by half of (n + 4) u and of delta^2/(variance + eps).
TEST(Pointwise, LayerNorm) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(2);
    for (const size_t n : Sizes()) {
      for (const size_t gap : {0, 3}) {
        const size_t rows = 3;
        Floats x = random.Uniform(rows * n, -2.0f, 2.0f);
        std::fill(x.begin(), x.begin() + static_cast<ptrdiff_t>(n), 7.25f);  // a row without variance
        for (size_t i = 0; i < n; ++i) x[n + i] += 1000.0f;                  // and one far from zero
        const Floats weight = random.Uniform(n, -1.0f, 1.0f), bias = random.Uniform(n, -1.0f, 1.0f);
        const float eps = 1e-5f;
        const auto run = [&](const Kernels& table, bool in_place) {
          Buffer<float> w(weight, Place::kEnd), b(bias, Place::kEnd);
          return RunRows(x, n, gap, in_place, Place::kEnd, [&](const float* from, size_t from_stride, float* to, size_t to_stride) {
            table.layer_norm(rows, n, from, from_stride, w.data(), b.data(), eps, to, to_stride);
          });
        };
        const Floats expected = run(Reference(), false);
        const auto bound = [&](size_t i) {
          const float* row = &x[i / n * n];
          double mean = 0, mean_abs = 0, variance = 0;
          const double count = static_cast<double>(n);
          for (size_t j = 0; j < n; ++j) mean += row[j] / count;
          for (size_t j = 0; j < n; ++j) mean_abs += std::fabs(row[j]) / count;
          for (size_t j = 0; j < n; ++j) variance += (row[j] - mean) * (row[j] - mean) / count;
          const double delta = (count + 2) * kU * mean_abs;
          const double scale = 1.0 / std::sqrt(variance + 1e-5);
          const double centred = std::fabs(x[i] - mean) + delta;
          const double relative = (count / 2 + 6) * kU + delta * delta * scale * scale;
          const double w = std::fabs(weight[i % n]);
          return w * scale * (delta + centred * relative) + 2 * kU * (std::fabs(expected[i]) + std::fabs(bias[i % n]));
        };
        ExpectNear("y", expected, run(kernels, false), bound);
        ExpectNear("y in place", expected, run(kernels, true), bound);
      }
    }
  });
}

// A sum of n squares, which its root halves; division, root, and two products: (n/2 + 5) u.
TEST(Pointwise, RmsNormAndL2Normalize) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(3);
    for (const size_t n : Sizes()) {
      for (const size_t gap : {0, 3}) {
        const size_t rows = 3;
        Floats x = random.Uniform(rows * n, -2.0f, 2.0f);
        std::fill(x.begin(), x.begin() + static_cast<ptrdiff_t>(n), 0.0f);
        const Floats weight = random.Uniform(n, -1.0f, 1.0f);
        const auto rms = [&](const Kernels& table, bool in_place) {
          Buffer<float> w(weight, Place::kEnd);
          return RunRows(x, n, gap, in_place, Place::kEnd, [&](const float* from, size_t from_stride, float* to, size_t to_stride) {
            table.rms_norm(rows, n, from, from_stride, w.data(), 1e-6f, to, to_stride);
          });
        };
        Floats expected = rms(Reference(), false);
        const auto bound = [&](size_t i) { return (static_cast<double>(n) / 2 + 6) * kU * std::fabs(expected[i]); };
        ExpectNear("rms", expected, rms(kernels, false), bound);
        ExpectNear("rms in place", expected, rms(kernels, true), bound);
        for (const bool inside : {false, true}) {
          const auto l2 = [&](const Kernels& table) {
            Buffer<float> in(Strided(x, n, n + gap), Place::kEnd);
            Buffer<float> out(rows * n, Place::kEnd);
            table.l2_normalize(rows, n, in.data(), n + gap, 0.7f, 1e-3f, inside, out.data());
            return out.values();
          };
          expected = l2(Reference());
          ExpectNear("l2", expected, l2(kernels), bound);
        }
      }
    }
  });
}

TEST(Pointwise, AddAndSiluMul) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(4);
    for (const size_t n : Sizes()) {
      for (const size_t gap : {0, 3}) {
        const size_t rows = 2;
        const Floats a = Values(random, rows * n, 20.0f), b = random.Uniform(rows * n, -3.0f, 3.0f);
        const auto run = [&](const Kernels& table, bool silu, int alias) {  // y is: 0 its own, 1 the first input, 2 the second
          Buffer<float> first(Strided(a, n, n + gap), Place::kEnd), second(Strided(b, n, n + gap), Place::kShifted);
          Buffer<float> own(StridedSize(rows, n, n + gap), Place::kEnd);
          Buffer<float>& out = alias == 0 ? own : alias == 1 ? first : second;
          const auto call = silu ? table.silu_mul : table.add;
          call(rows, n, first.data(), n + gap, second.data(), n + gap, out.data(), n + gap);
          return Unstrided(out.values(), n, n + gap);
        };
        const Floats sum = run(Reference(), false, 0), product = run(Reference(), true, 0);
        for (int alias = 0; alias < 3; ++alias) {
          ExpectEqual("add", sum, run(kernels, false, alias));
          // exp 2, sum, quotient and two products 4, the oracle's own rounding 1
          ExpectNear("silu_mul", product, run(kernels, true, alias), [&](size_t i) {
            return 7 * kU * std::fabs(product[i]) + (1.0 + std::fabs(b[i])) * (1.0 + std::fabs(a[i])) * kTiny;
          });
        }
      }
    }
  });
}

// One rounding, whichever operand the result takes the place of.
TEST(Pointwise, Products) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(11);
    for (const size_t n : Sizes()) {
      const size_t rows = 2;
      const Floats gate = Values(random, rows * n, 20.0f), up = random.Uniform(rows * n, -3.0f, 3.0f);
      const auto run = [&](const Kernels& table, int alias) {
        Buffer<float> first(gate, Place::kEnd), second(up, Place::kShifted), out(Floats(rows * n), Place::kEnd);
        Buffer<float>& y = alias == 1 ? first : alias == 2 ? second : out;
        table.mul(rows, n, first.data(), n, second.data(), n, y.data(), n);
        return y.values();
      };
      for (const int alias : {0, 1, 2}) ExpectEqual("mul", run(Reference(), 0), run(kernels, alias));
    }
  });
}

// exp 2, sum, quotient and product 3, the oracle's own rounding 1
TEST(Pointwise, GatedSigmoid) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(10);
    for (const size_t n : Sizes()) {
      const size_t rows = 2;
      const Floats gate = Values(random, rows * n, 20.0f), up = random.Uniform(rows * n, -3.0f, 3.0f);
      const auto run = [&](const Kernels& table) {
        Buffer<float> first(gate, Place::kEnd), second(up, Place::kShifted), out(Floats(rows * n), Place::kEnd);
        table.sigmoid_mul(rows, n, first.data(), n, second.data(), n, out.data(), n);
        return out.values();
      };
      const Floats expected = run(Reference());
      ExpectNear("sigmoid_mul", expected, run(kernels),
                 [&](size_t i) { return 6 * kU * std::fabs(expected[i]) + (1.0 + std::fabs(up[i])) * kTiny; });
    }
  });
}

// The activation, whose bound is that of Gelu and GeluTanh above, a product, and the oracle's own rounding.
TEST(Pointwise, GatedGelus) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(9);
    for (const size_t n : Sizes()) {
      const size_t rows = 2;
      const Floats gate = random.Uniform(rows * n, -6.0f, 6.0f), up = random.Uniform(rows * n, -3.0f, 3.0f);
      for (const bool exact : {true, false}) {
        const auto run = [&](const Kernels& table) {
          Buffer<float> first(gate, Place::kEnd), second(up, Place::kShifted), out(Floats(rows * n), Place::kEnd);
          (exact ? table.gelu_mul : table.gelu_tanh_mul)(rows, n, first.data(), n, second.data(), n, out.data(), n);
          return out.values();
        };
        const Floats expected = run(Reference());
        ExpectNear(exact ? "gelu_mul" : "gelu_tanh_mul", expected, run(kernels), [&](size_t i) {
          const double v = gate[i], z = 1.5957691216057308 * (v + 0.044715 * v * v * v);
          const double magnified = z < 0 ? std::fabs(z) : z * std::exp(-z);
          const double roundings = exact ? 15.0 : 8.0 + 3.0 * magnified;
          return (roundings + 1.0) * kU * std::fabs(expected[i]) + (1.0 + std::fabs(v)) * (1.0 + std::fabs(up[i])) * kTiny;
        });
      }
    }
  });
}

// Products of one rounding: equal bit for bit.
TEST(Pointwise, ScaledRowsAreExact) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(5);
    for (const size_t n : Sizes()) {
      for (const Place place : {Place::kEnd, Place::kShifted}) {
        Buffer<float> f32(Values(random, n, 5.0f), place);
        std::vector<int8_t> bytes(n);
        std::vector<uint16_t> halves(n);
        for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<int8_t>(static_cast<int>(i * 37 % 256) - 128);
        for (size_t i = 0; i < n; ++i) {
          halves[i] = static_cast<uint16_t>(i * 1777);  // every exponent, zeros and denormals among them
          if ((halves[i] & 0x7C00) == 0x7C00) halves[i] = static_cast<uint16_t>(halves[i] ^ 0x0400);  // but no infinity
        }
        Buffer<int8_t> i8(bytes, place);
        Buffer<uint16_t> f16(halves, place);
        const auto run = [&](const Kernels& table, int type) {
          Buffer<float> y(n, place);
          if (type == 0) table.scale_f32(n, f32.data(), 0.3f, y.data());
          if (type == 1) table.scale_f16(n, f16.data(), 0.3f, y.data());
          if (type == 2) table.scale_i8(n, i8.data(), 0.3f, y.data());
          return y.values();
        };
        for (int type = 0; type < 3; ++type) ExpectEqual("scaled", run(Reference(), type), run(kernels, type));
      }
    }
  });
}

// The f64 sine is off by less than 4e-15 (reduction 1e-15, function 3 ulp); rounding it can then fall to the other side: 2 u.
TEST(Pointwise, Sinusoid) {
  ForEachTable([&](const Kernels& kernels) {
    for (const size_t n : Sizes()) {
      for (const double position : {0.0, 1.0, 511.0, 123456.0, 1e9, 0x1p40 - 1}) {
        std::vector<double> frequency(n);
        for (size_t i = 0; i < n; ++i) frequency[i] = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(n));
        Buffer<double> frequencies(frequency, Place::kEnd);
        const auto run = [&](const Kernels& table) {
          Buffer<float> sine(n, Place::kEnd), cosine(n, Place::kShifted);
          table.sinusoid(n, position, frequencies.data(), sine.data(), cosine.data());
          Floats both = sine.values();
          for (const float c : cosine.values()) both.push_back(c);
          return both;
        };
        const Floats expected = run(Reference());
        ExpectNear("sine, cosine", expected, run(kernels), [&](size_t i) { return 2 * kU * std::fabs(expected[i]) + 4e-15; });
      }
    }
  });
}

// Two products and a sum, and the oracle's rounding: 3 u (|x1 c| + |x2 s|).
TEST(Pointwise, Rope) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(6);
    for (size_t half = 1; half <= 35; ++half) {
      const size_t d = 2 * half, rows = 2, heads = 1 + half % 3, n = heads * d;
      const Floats x = random.Uniform(rows * n, -3.0f, 3.0f);
      Floats angles(rows * d);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t i = 0; i < half; ++i) {
          const float angle = random.Uniform(-3.0f, 3.0f);
          angles[r * d + i] = std::cos(angle);
          angles[r * d + half + i] = std::sin(angle);
        }
      }
      const auto run = [&](const Kernels& table, bool in_place) {
        Buffer<float> turn(angles, Place::kEnd);
        return RunRows(x, n, 3, in_place, Place::kEnd, [&](const float* from, size_t from_stride, float* to, size_t to_stride) {
          table.rope(rows, heads, d, from, from_stride, turn.data(), to, to_stride);
        });
      };
      const Floats expected = run(Reference(), false);
      const auto bound = [&](size_t i) {
        const size_t pair = i % d < half ? i + half : i - half;
        return 3 * kU * (std::fabs(x[i]) + std::fabs(x[pair]));
      };
      ExpectNear("rope", expected, run(kernels, false), bound);
      ExpectNear("rope in place", expected, run(kernels, true), bound);
    }
  });
}

// A sum of m positive numbers, eps and a division.
TEST(Pointwise, SumNormalize) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(7);
    for (const size_t m : Sizes()) {
      for (const Place place : {Place::kEnd, Place::kShifted}) {
        const size_t rows = 4;
        Floats phi = random.Uniform(rows * m, 0.0f, 2.0f);
        const auto row = [&](size_t r) { return phi.begin() + static_cast<ptrdiff_t>(r * m); };
        std::fill(row(1), row(2), 0.0f);    // a row of zeros
#if !defined(__arm__)                       // whose vectors take denormals for zeros, always
        std::fill(row(2), row(3), 1e-39f);  // and one whose sum has no inverse
#endif
        for (const float eps : {0.0f, 1e-6f}) {
          const auto run = [&](const Kernels& table) {
            Buffer<float> in_place(phi, place);
            table.sum_normalize(rows, m, eps, in_place.data());
            return in_place.values();
          };
          const Floats expected = run(Reference()), actual = run(kernels);
          ExpectNear("phi", expected, actual,
                     [&](size_t i) { return (static_cast<double>(m) + 3) * kU * std::fabs(expected[i]) + kTiny; });
          for (size_t r = 0; r < rows; ++r) {
            double before = 0, after = 0;
            for (size_t i = r * m; i < (r + 1) * m; ++i) before += phi[i], after += actual[i];
            const double whole = r == 1 ? 0.0 : before / (before + static_cast<double>(eps));
            EXPECT_NEAR(after, whole, (static_cast<double>(m) + 3) * kU * whole) << r;
          }
        }
      }
    }
  });
}

// A sum of d squares; with sigma each has a rounding more, twice.
TEST(Pointwise, HalfSquaredNorm) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(8);
    for (const size_t d : Sizes()) {
      for (const bool scaled : {false, true}) {
        const size_t rows = 3;
        const Place place = scaled ? Place::kEnd : Place::kShifted;
        Buffer<float> x(random.Uniform(rows * d, -20.0f, 20.0f), place), sigma(random.Uniform(d, 0.0f, 2.0f), place);
        const auto run = [&](const Kernels& table) {
          Buffer<float> log_weight(rows, place);
          table.half_squared_norm(rows, d, x.data(), scaled ? sigma.data() : nullptr, log_weight.data());
          return log_weight.values();
        };
        const Floats expected = run(Reference());
        ExpectNear("log_weight", expected, run(kernels), [&](size_t r) { return (static_cast<double>(d) + 4) * kU * expected[r]; });
        double sum = 0;
        for (size_t i = 0; i < d; ++i) {
          sum += std::pow((scaled ? static_cast<double>(sigma.data()[i]) : 1.0) * x.data()[(rows - 1) * d + i], 2);
        }
        EXPECT_NEAR(expected[rows - 1], sum / 2, kU * sum);
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
