// Feature maps: every table against the reference, the reference against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr float kRatio = 0.3f, kEps = 1e-3f;

// A feature map with its parameters, and rows of x.
struct Case {
  Case(FeatureMap m, size_t r, size_t d, size_t count) : map(m), rows(r), head_dim(d), projections(count) {}

  FeatureMap map;
  size_t rows, head_dim, projections;
  uint32_t nu = 1;
  bool negate_second = false;
  Floats x, weight, bias;  // weight [d, D] and bias [D] are empty where the map has none

  void Fill(Random& random, float range) {
    x = random.Uniform(rows * head_dim, -range, range);
    weight = random.Uniform(head_dim * projections, -range, range);
    bias = random.Uniform(projections, -range, range);
  }
  size_t Features() const { return InfoOf(map).features({head_dim, projections, nu}); }
};

struct Result {
  Floats phi, log_weight;
};

Result RunMap(const Kernels& table, const Case& c, Place place = Place::kEnd) {
  Buffer<float> x(c.x, place), weight(c.weight, place), bias(c.bias, place);
  Buffer<float> phi(c.rows * c.Features(), place), log_weight(c.rows, place);
  FeatureArgs a = {};
  a.rows = c.rows;
  a.head_dim = c.head_dim;
  a.projections = c.projections;
  a.x = x.data();
  a.weight = c.projections > 0 ? weight.data() : nullptr;
  a.bias = InfoOf(c.map).bias ? bias.data() : nullptr;
  a.ratio = kRatio;
  a.eps = kEps;
  a.nu = c.nu;
  a.negate_second = c.negate_second;
  a.phi = phi.data();
  a.log_weight = InfoOf(c.map).log_weights ? log_weight.data() : nullptr;
  table.features[static_cast<size_t>(c.map)](a);
  return {phi.values(), log_weight.values()};
}

// Model files store places in these lists: entries keep theirs.
TEST(Variants, NumbersOfModelFiles) {
  const auto expect = [](std::initializer_list<const char*> names, const auto& name_of) {
    size_t number = 0;
    for (const char* name : names) EXPECT_STREQ(name, name_of(number++));
  };
  expect({"gaussian", "arccos", "elu_plus_one", "positive", "relu", "dpfp", "mlp_relu", "identity", "product", "hedgehog"},
         [](size_t i) { return kFeatureMaps[i].name; });
  expect({"none", "forget", "vector", "constant", "softplus", "softplus_vector", "tied", "step", "sigmoid_vector"},
         [](size_t i) { return kGates[i].name; });
  expect({"sum", "delta", "replace"}, [](size_t i) { return kWriteRules[i].name; });
  expect({"none", "outside", "inside"}, [](size_t i) { return kVectorNormNames[i]; });
  expect({"none", "add", "clamp_min", "abs_clamp_min"}, [](size_t i) { return kDenModeNames[i]; });
}

// w_j . x in f64.
double Project(const Case& c, size_t row, size_t j) {
  double sum = 0;
  for (size_t i = 0; i < c.head_dim; ++i) {
    sum += static_cast<double>(c.weight[i * c.projections + j]) * c.x[row * c.head_dim + i];
  }
  return sum;
}

// |W||x| + |bias| of every row and projection: what an error in Wx + bias is relative to.
Floats ProjectionSizes(Case c) {
  c.map = FeatureMap::kMlpRelu;
  c.x = Abs(c.x);
  c.weight = Abs(c.weight);
  c.bias = Abs(c.bias);
  return RunMap(Reference(), c).phi;
}

void ForEachShape(const std::function<void(const Kernels&, Random&, size_t rows, size_t d, size_t projections, Place)>& f) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(1);
    for (const size_t projections : Sizes()) {
      for (const size_t d : {size_t{1}, size_t{7}, projections, size_t{64}}) {
        const size_t rows = 1 + (projections + d) % 6;
        f(kernels, random, rows, d, projections, rows % 2 == 0 ? Place::kEnd : Place::kShifted);
      }
    }
  });
}

// Wx is a sum of d products, whose error the functions pass on (|sin'|, |relu'| <= 1); sine and cosine are off by 6 u, and scaled.
TEST(Features, ProjectionsOfEveryTable) {
  ForEachShape([](const Kernels& kernels, Random& random, size_t rows, size_t d, size_t projections, Place place) {
    Case c(FeatureMap::kGaussian, rows, d, projections);
    c.Fill(random, 2.0f);
    const Floats sizes = ProjectionSizes(c);
    const auto argument = [&](size_t i) { return (static_cast<double>(d) + 2) * kU * sizes[i]; };
    const double scale = std::sqrt(1.0 / static_cast<double>(projections));
    const auto compare = [&](const char* what, FeatureMap map, const std::function<double(size_t)>& bound) {
      c.map = map;
      ExpectNear(what, RunMap(Reference(), c).phi, RunMap(kernels, c, place).phi, bound);
    };
    compare("gaussian", FeatureMap::kGaussian,
            [&](size_t i) { return scale * (argument(i / (2 * projections) * projections + i % projections) + 9 * kU); });
    compare("arccos", FeatureMap::kArccos, [&](size_t i) { return scale * (argument(i) + 4 * kU * sizes[i]); });
    compare("relu", FeatureMap::kRelu, [&](size_t i) { return kRatio * (argument(i) + 3 * kU * sizes[i]) + 2 * kU * kEps; });
    compare("mlp_relu", FeatureMap::kMlpRelu, [&](size_t i) { return argument(i) + 2 * kU * sizes[i]; });
  });
}

// The exponent is a difference of two projections, which exp magnifies; exp 2, square root and division 2, product, oracle.
TEST(Features, PositiveOfEveryTable) {
  ForEachShape([](const Kernels& kernels, Random& random, size_t rows, size_t d, size_t projections, Place place) {
    Case c(FeatureMap::kPositive, rows, d, projections);
    c.Fill(random, d > 16 ? 0.5f : 2.0f);
    const Floats sizes = ProjectionSizes(c);
    const Result expected = RunMap(Reference(), c), actual = RunMap(kernels, c, place);
    const auto largest = [&](size_t row) {
      const float* first = &sizes[row * projections];
      return static_cast<double>(*std::max_element(first, first + projections));
    };
    const double u = (static_cast<double>(d) + 2) * kU;
    ExpectNear("phi", expected.phi, actual.phi,
               [&](size_t i) { return expected.phi[i] * (std::expm1(4 * u * largest(i / projections)) + 7 * kU) + kTiny; });
    ExpectNear("log_weight", expected.log_weight, actual.log_weight, [&](size_t row) {
      double squares = 0;
      for (size_t i = 0; i < d; ++i) squares += std::pow(static_cast<double>(c.x[row * d + i]), 2);
      return (u + kU) * (largest(row) + squares);
    });
  });
}

// Without a projection: x + 1 rounds once, exp is off by 2 u; products of DPFP round once; the rest is exact.
TEST(Features, MapsWithoutProjectionOfEveryTable) {
  constexpr float kSpecial[] = {0.0f, -0.0f, 1e-40f, -1e-40f, 1e3f, -1e3f, 88.5f, -88.5f, -104.5f, 3e38f, -3e38f, -1e-20f};
  ForEachTable([&](const Kernels& kernels) {
    Random random(2);
    for (const size_t d : Sizes()) {
      for (const Place place : {Place::kEnd, Place::kShifted}) {
        Case c(FeatureMap::kIdentity, 1 + d % 3, d, 0);
        c.Fill(random, 3.0f);
        for (size_t i = 0; i < c.x.size(); i += 1 + i % 5) c.x[i] = kSpecial[i % (sizeof(kSpecial) / sizeof(float))];
        const auto run = [&](const Kernels& table, FeatureMap map) {
          c.map = map;
          return RunMap(table, c, place).phi;
        };
        ExpectEqual("identity", c.x, run(kernels, FeatureMap::kIdentity));
        Floats expected = run(Reference(), FeatureMap::kEluPlusOne);
        ExpectNear("elu_plus_one", expected, run(kernels, FeatureMap::kEluPlusOne),
                   [&](size_t i) { return c.x[i] > 0.0f ? 0.0 : 3 * kU * expected[i] + kTiny; });
        expected = run(Reference(), FeatureMap::kRelu);
        ExpectNear("relu", expected, run(kernels, FeatureMap::kRelu), [&](size_t i) { return 3 * kU * expected[i]; });
        c.x = random.Uniform(c.x.size(), -3.0f, 3.0f);
        for (c.nu = 1; c.nu <= 4; ++c.nu) {  // beyond 2d - 1 the shifts come around
          for (const bool negate : {false, true}) {
            c.negate_second = negate;
            ExpectEqual("dpfp", run(Reference(), FeatureMap::kDpfp), run(kernels, FeatureMap::kDpfp));
          }
        }
      }
    }
  });
}

// Every line of the list, also one that has no test of its own: small inputs, of which a map may magnify the error of Wx, (d + 2) u
// of at most 1, by a slope of up to 64.
TEST(Features, EveryMapOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (size_t map = 0; map < kFeatureMapCount; ++map) {
      const FeatureMapInfo& info = kFeatureMaps[map];
      for (const size_t d : Sizes()) {
        Case c(static_cast<FeatureMap>(map), 1 + d % 4, d, info.projection == Projection::kNone ? 0 : 1 + (d * 7) % 40);
        c.Fill(random, 0.5f);
        for (float& weight : c.weight) weight /= static_cast<float>(d);
        const auto bound_of = [&](const Floats& values) {
          double largest = 1;
          for (const float value : values) largest = std::fmax(largest, std::fabs(value));
          return [bound = 64 * (static_cast<double>(d) + 2) * kU * largest](size_t) { return bound; };
        };
        const Result expected = RunMap(Reference(), c), actual = RunMap(kernels, c, d % 2 == 0 ? Place::kEnd : Place::kShifted);
        ExpectNear(info.name, expected.phi, actual.phi, bound_of(expected.phi));
        if (info.log_weights) ExpectNear(info.name, expected.log_weight, actual.log_weight, bound_of(expected.log_weight));
      }
    }
  });
}

// Without normalization |Wx| has no bound (MATH 1.2.3): the range reduction has to hold. It leaves three roundings of a number
// below 1 (without fused multiply-adds also one of a product below 2.5), to which the functions add 6 u; the oracle 1.
TEST(Features, GaussianOfLargeArguments) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    Case c(FeatureMap::kGaussian, 4000, 1, 1);
    c.weight = {1.0f};
    for (size_t i = 0; i < c.rows; ++i) c.x.push_back(random.Uniform(-1.0f, 1.0f) * (i % 2 == 0 ? 100.0f : 8192.0f));
    const Floats phi = RunMap(kernels, c).phi;
    double worst = 0;
    for (size_t i = 0; i < c.rows; ++i) {
      const double x = c.x[i];
      worst = std::fmax(worst, std::fabs(phi[2 * i] - std::sin(x)));
      worst = std::fmax(worst, std::fabs(phi[2 * i + 1] - std::cos(x)));
    }
    EXPECT_LE(worst, 13 * kU);
  });
}

// Standard normal numbers, by Box and Muller.
Floats Normal(size_t size) {
  std::mt19937 engine(7);
  Floats values(size);
  for (float& value : values) {
    const double u = (static_cast<double>(engine()) + 1.0) * 0x1p-32, v = static_cast<double>(engine()) * 0x1p-32;
    value = static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
  }
  return values;
}

double Product(const Floats& phi, size_t m, size_t a, size_t b) {
  double sum = 0;
  for (size_t i = 0; i < m; ++i) sum += static_cast<double>(phi[a * m + i]) * phi[b * m + i];
  return sum;
}

// MATH 1.2.1 and 1.4: for W ~ N(0, 1) |phi(x)| = 1 and phi(x).phi(y) is near exp(-|x - y|^2/2) with random Fourier features; with
// positive ones it is near exp(x.y), once the weights are put back.
TEST(Features, KernelsOfTheReference) {
  constexpr size_t d = 8, projections = 4096;
  Case c(FeatureMap::kGaussian, 2, d, projections);
  c.weight = Normal(d * projections);
  c.x = Random(3).Uniform(2 * d, -0.4f, 0.4f);
  double distance = 0, product = 0;
  for (size_t i = 0; i < d; ++i) distance += std::pow(static_cast<double>(c.x[i]) - c.x[d + i], 2);
  for (size_t i = 0; i < d; ++i) product += static_cast<double>(c.x[i]) * c.x[d + i];
  const double noise = 4 / std::sqrt(static_cast<double>(projections));
  Floats phi = RunMap(Reference(), c).phi;
  EXPECT_NEAR(Product(phi, c.Features(), 0, 0), 1.0, 1e-5);
  EXPECT_NEAR(Product(phi, c.Features(), 0, 1), std::exp(-distance / 2), noise);
  c.map = FeatureMap::kPositive;
  const Result positive = RunMap(Reference(), c);
  const double weight = std::exp(static_cast<double>(positive.log_weight[0]) + positive.log_weight[1]);
  // The variance of a term is exp(|x + y|^2 + 2 x.y) - exp(2 x.y), below 20 here.
  EXPECT_NEAR(weight * Product(positive.phi, projections, 0, 1), std::exp(product), std::sqrt(20.0) * noise);
}

// phi exp(log_weight) = sqrt(1/D) exp(w.x - |x|^2/2), and the largest feature of every row is sqrt(1/D), however long x is.
TEST(Features, PositiveClosedForm) {
  for (const float range : {0.5f, 30.0f}) {
    Random random(4);
    Case c(FeatureMap::kPositive, 3, 5, 11);
    c.Fill(random, range);
    const Result result = RunMap(Reference(), c);
    for (size_t row = 0; row < c.rows; ++row) {
      const Floats phi(result.phi.begin() + static_cast<ptrdiff_t>(row * 11),
                       result.phi.begin() + static_cast<ptrdiff_t>(row * 11 + 11));
      EXPECT_EQ(*std::max_element(phi.begin(), phi.end()), static_cast<float>(std::sqrt(1.0 / 11)));
      double squares = 0;
      for (size_t i = 0; i < c.head_dim; ++i) squares += std::pow(static_cast<double>(c.x[row * c.head_dim + i]), 2);
      for (size_t j = 0; j < c.projections; ++j) {
        const double expected = std::sqrt(1.0 / 11) * std::exp(Project(c, row, j) - squares / 2 - result.log_weight[row]);
        // log_weight was rounded to f32, and so is phi.
        const double u = std::expm1(std::fabs(static_cast<double>(result.log_weight[row])) * kU) + kU;
        EXPECT_NEAR(phi[j], expected, u * expected + kTiny) << row << " " << j;
      }
    }
  }
}

// MATH 1.3: exp(x) keeps its digits where elu(x) + 1 has none.
TEST(Features, EluPlusOneKeepsItsDigits) {
  Case c(FeatureMap::kEluPlusOne, 1, 4, 0);
  c.x = {-20.0f, 0.0f, 2.5f, -80.0f};
  const Floats phi = RunMap(Reference(), c).phi;
  EXPECT_NEAR(phi[0] / std::exp(-20.0), 1.0, kU);
  EXPECT_EQ(phi[1], 1.0f);
  EXPECT_EQ(phi[2], 3.5f);
  EXPECT_NEAR(phi[3] / std::exp(-80.0), 1.0, kU);
}

// MATH 1.5, by hand: x = (1, -2, 3) has r = (1, 0, 3, 0, 2, 0); in fla's form r = (1, 0, 3, -1, 0, -3).
TEST(Features, DpfpByHand) {
  Case c(FeatureMap::kDpfp, 1, 3, 0);
  c.x = {1.0f, -2.0f, 3.0f};
  c.nu = 2;
  ExpectEqual("paper", {0, 0, 0, 0, 0, 0, 3, 0, 6, 0, 2, 0}, RunMap(Reference(), c).phi);
  c.negate_second = true;
  ExpectEqual("fla", {0, 0, -3, 0, 0, -3, 3, 0, 0, 3, 0, 0}, RunMap(Reference(), c).phi);
}

// relu(ratio Wx) + eps and relu(Wx + bias), of both signs.
TEST(Features, RectifiedByHand) {
  Case c(FeatureMap::kRelu, 2, 2, 2);
  c.x = {1.0f, 2.0f, -3.0f, 0.5f};
  c.weight = {1.0f, -1.0f, 0.25f, 4.0f};  // [d, D]: w_1 = (1, 0.25), w_2 = (-1, 4)
  c.bias = {-1.0f, 2.0f};
  const auto near = [](size_t) { return 1e-6; };
  ExpectNear("relu", {1.5f * kRatio + kEps, 7 * kRatio + kEps, kEps, 5 * kRatio + kEps}, RunMap(Reference(), c).phi, near);
  c.map = FeatureMap::kMlpRelu;
  ExpectEqual("mlp_relu", {0.5f, 9.0f, 0.0f, 7.0f}, RunMap(Reference(), c).phi);
  c.map = FeatureMap::kRelu;
  c.projections = 0;
  ExpectNear("relu of x", {kRatio + kEps, 2 * kRatio + kEps, kEps, 0.5f * kRatio + kEps}, RunMap(Reference(), c).phi, near);
}

// softmax([2y; -2y]) of y = Wx + bias, also where exp(2y) would overflow.
TEST(Features, HedgehogByHand) {
  Case c(FeatureMap::kHedgehog, 2, 1, 2);
  c.x = {1.0f, 100.0f};
  c.weight = {0.5f, -1.0f};  // [d, D]
  c.bias = {0.5f, 0.0f};
  const double e = std::exp(2.0), sum = 2 * (e + 1 / e);
  ForEachTable([&](const Kernels& kernels) {
    const Floats phi = RunMap(kernels, c).phi;
    const double expected[] = {e / sum, 1 / e / sum, 1 / e / sum, e / sum, 0, 0, 0, 1};
    for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(phi[i], expected[i], 4 * kU) << i;
    c.x[0] = NAN;
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(RunMap(kernels, c).phi[i])) << i;
    c.x[0] = 1.0f;
  });
}

// exp 2, product, sum and the oracle, of terms of the size of phi and the offset.
TEST(Features, DampedOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(9);
    for (const size_t m : Sizes()) {
      const size_t rows = 1 + m % 5;
      const Place place = m % 2 == 0 ? Place::kEnd : Place::kShifted;
      const Floats drop = random.Uniform(rows, 0.0f, 120.0f), phi = random.Uniform(rows * m, 0.0f, 1.0f);
      const auto run = [&](const Kernels& table) {
        Buffer<float> by(drop, place), out(phi, place);
        table.damp_features(rows, m, by.data(), 1e-4f, out.data());
        return out.values();
      };
      const Floats expected = run(Reference());
      ExpectNear("phi", expected, run(kernels), [&](size_t i) { return 6 * kU * expected[i]; });
    }
  });
}

}  // namespace
}  // namespace tarn::testing
