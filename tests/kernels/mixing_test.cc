// Rows that are mixed elementwise: every table against the reference, the reference against the equation.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr size_t kRows = 3, kGap = 2;

// The reference and the oracle both compute in double, but a compiler may fuse other products with sums in each: where terms
// cancel, their last bits differ, and what is left is small.
constexpr double kDoubleEpsilon = std::numeric_limits<double>::epsilon();

// y = o + c v: c is exact, or a sum of d products of three factors, with 2 roundings each and d of the sum; then 1, and oracle 1.
TEST(Mixing, Skip) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(31);
    for (const size_t value_dim : Sizes()) {
      if (value_dim > 100) continue;
      for (const size_t key_dim : {size_t{0}, size_t{1}, size_t{7}, value_dim}) {
        const size_t heads = 1 + value_dim % 3, values = heads * value_dim, keys = heads * key_dim;
        const bool products = key_dim > 0;
        const Floats o = random.Uniform(kRows * values, -2.0f, 2.0f), v = random.Uniform(kRows * values, -2.0f, 2.0f);
        const Floats q = random.Uniform(kRows * keys, -2.0f, 2.0f), k = random.Uniform(kRows * keys, -2.0f, 2.0f);
        const Floats w = random.Uniform(products ? keys : heads, -2.0f, 2.0f);
        Buffer<float> weight(w, Place::kEnd), bv(Strided(v, values, values + kGap), Place::kEnd);
        Buffer<float> bq(products ? Strided(q, keys, keys + kGap) : Floats(1), Place::kEnd);
        Buffer<float> bk(products ? Strided(k, keys, keys + 1) : Floats(1), Place::kShifted);
        const auto run = [&](const Kernels& table) {
          Buffer<float> y(Strided(o, values, values + 1), Place::kEnd);  // in place
          table.skip({kRows, heads, value_dim, key_dim, y.data(), values + 1, bv.data(), values + kGap,
                      products ? bq.data() : nullptr, keys + kGap, products ? bk.data() : nullptr, keys + 1, weight.data(),
                      y.data(), values + 1});
          return Unstrided(y.values(), values, values + 1);
        };
        // The coefficient of an element, and the sum of the absolute values of what it is made of.
        const auto coefficient = [&](size_t i, bool absolute) {
          const size_t row = i / values, head = i % values / value_dim;
          double sum = products ? 0 : absolute ? std::fabs(w[head]) : static_cast<double>(w[head]);
          for (size_t j = head * key_dim; j < (head + 1) * key_dim; ++j) {
            const double term = static_cast<double>(w[j]) * q[row * keys + j] * k[row * keys + j];
            sum += absolute ? std::fabs(term) : term;
          }
          return sum;
        };
        const Floats expected = run(Reference());
        ExpectNear("y", expected, run(kernels), [&](size_t i) {
          const double terms = coefficient(i, true) * std::fabs(v[i]);
          return (static_cast<double>(key_dim + 4) * terms + std::fabs(o[i]) + std::fabs(expected[i])) * kU + kTiny;
        });
        for (size_t i = 0; i < expected.size(); ++i) {
          const double closed = o[i] + coefficient(i, false) * v[i];
          const double terms = coefficient(i, true) * std::fabs(v[i]);
          const double in_double = (static_cast<double>(key_dim + 3) * terms + std::fabs(o[i])) * kDoubleEpsilon;
          EXPECT_NEAR(expected[i], closed, kU * std::fabs(closed) + in_double + kTiny);
        }
      }
    }
  });
}

// The sigmoid 4, its product with c 1, the difference 1, the product 1 and the sum 1, oracle 1.
TEST(Mixing, Blend) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(32);
    for (const size_t n : Sizes()) {
      for (const int form : {0, 1, 2, 3}) {
        const bool has_z = form % 2 == 1, weighed = form >= 2;
        const Floats x = random.Uniform(kRows * n, -2.0f, 2.0f), z = random.Uniform(kRows * n, -2.0f, 2.0f);
        const Floats l = random.Uniform(kRows * n, -30.0f, 30.0f), c = random.Uniform(n, -2.0f, 2.0f);
        Buffer<float> bl(Strided(l, n, n + kGap), Place::kEnd), bz(Strided(z, n, n + 1), Place::kEnd), bc(c, Place::kShifted);
        const auto run = [&](const Kernels& table) {
          Buffer<float> y(Strided(x, n, n + 1), Place::kEnd);  // in place
          table.blend({kRows, n, y.data(), n + 1, bl.data(), n + kGap, has_z ? bz.data() : nullptr, n + 1,
                       weighed ? bc.data() : nullptr, y.data(), n + 1});
          return Unstrided(y.values(), n, n + 1);
        };
        const auto part = [&](size_t i) { return (weighed ? c[i % n] : 1.0) / (1 + std::exp(static_cast<double>(l[i]))); };
        const auto to = [&](size_t i) { return has_z ? static_cast<double>(z[i]) : 0.0; };
        const Floats expected = run(Reference());
        ExpectNear("y", expected, run(kernels), [&](size_t i) {
          return (7 * std::fabs(part(i)) * (std::fabs(to(i)) + std::fabs(x[i])) + 2 * std::fabs(expected[i])) * kU + 4 * kTiny;
        });
        for (size_t i = 0; i < expected.size(); ++i) {
          const double closed = x[i] + part(i) * (to(i) - x[i]);
          const double in_double =
              (4 * std::fabs(part(i)) * (std::fabs(to(i)) + std::fabs(x[i])) + std::fabs(x[i])) * kDoubleEpsilon;
          EXPECT_NEAR(expected[i], closed, kU * std::fabs(closed) + in_double + kTiny);
        }
      }
    }
  });
}

TEST(Mixing, MulIsExact) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(33);
    for (const size_t n : Sizes()) {
      const Floats a = random.Uniform(kRows * n, -3.0f, 3.0f), b = random.Uniform(kRows * n, -3.0f, 3.0f);
      const auto run = [&](const Kernels& table) {
        Buffer<float> first(a, Place::kEnd), second(b, Place::kShifted);
        table.mul(kRows, n, first.data(), n, second.data(), n, second.data(), n);
        return second.values();
      };
      ExpectEqual("y", run(Reference()), run(kernels));
    }
  });
}

// What a NaN reaches: its head, or its element.
TEST(Mixing, NansStayWhereTheyAre) {
  ForEachTable([&](const Kernels& kernels) {
    const float nan = std::nanf("");
    Floats o(6, 1.0f), v(6, 1.0f), w = {1, nan}, y(6);
    kernels.skip({1, 2, 3, 0, o.data(), 6, v.data(), 6, nullptr, 0, nullptr, 0, w.data(), y.data(), 6});
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(y[i]), i >= 3) << i;
    for (const int which : {0, 1, 2}) {
      Floats x(5, 1.0f), l(5, 0.5f), z(5, 2.0f), blended(5);
      (which == 0 ? x : which == 1 ? l : z)[2] = nan;
      kernels.blend({1, 5, x.data(), 5, l.data(), 5, z.data(), 5, nullptr, blended.data(), 5});
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(blended[i]), i == 2) << i;
    }
  });
}

}  // namespace
}  // namespace tarn::testing
