// Rule "replace" of linear states: every table against the reference, the reference against the equation and against the delta
// rule, which it becomes where the removal key is the key.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

enum class Decay { kNone, kScalar, kByRow };

struct Step {
  Step(Random& random, size_t g, size_t m, size_t dv, Decay kind) : queries(g), features(m), value_dim(dv), decay(kind) {
    q = random.Uniform(g * m, -1.0f, 1.0f);
    k = random.Uniform(m, -1.0f, 1.0f);
    v = random.Uniform(dv, -1.0f, 1.0f);
    row_decay = random.Uniform(m, 0.0f, 1.0f);
    removal = random.Uniform(m, -1.0f, 1.0f);
    taken = random.Uniform(m, -1.0f, 1.0f);
    state = random.Uniform(m * dv, -1.0f, 1.0f);
  }

  // o, and the state behind it.
  Floats Run(const Kernels& table, Place place) const {
    Buffer<float> bq(q, place), bk(k, place), bv(v, place), br(row_decay, place), removed(removal, place), take(taken, place);
    Buffer<float> s(state, place), o(queries * value_dim, place);
    table.replace_step({queries, features, value_dim, bq.data(), bk.data(), bv.data(), decay == Decay::kScalar ? 0.75f : 1.0f,
                        decay == Decay::kByRow ? br.data() : nullptr, removed.data(), take.data(), scale, s.data(), o.data()});
    Floats all = o.values();
    for (const float cell : s.values()) all.push_back(cell);
    return all;
  }

  double DecayOf(size_t r) const {
    return decay == Decay::kByRow ? static_cast<double>(row_decay[r]) : decay == Decay::kScalar ? 0.75 : 1.0;
  }

  // The same in f64; with `absolute` the sums of the absolute values of all terms.
  std::vector<double> Exact(bool absolute) const {
    const auto term = [absolute](double x) { return absolute ? std::fabs(x) : x; };
    std::vector<double> o(queries * value_dim), s(features * value_dim);
    for (size_t e = 0; e < value_dim; ++e) {
      double old = 0;
      for (size_t r = 0; r < features; ++r) old += term(static_cast<double>(removal[r]) * state[r * value_dim + e]);
      for (size_t r = 0; r < features; ++r) {
        double& cell = s[r * value_dim + e];
        cell = term(DecayOf(r) * state[r * value_dim + e]) + term(static_cast<double>(k[r]) * v[e]) + term(-taken[r] * old);
        for (size_t g = 0; g < queries; ++g) o[g * value_dim + e] += term(static_cast<double>(scale) * q[g * features + r] * cell);
      }
    }
    o.insert(o.end(), s.begin(), s.end());
    return o;
  }

  size_t queries, features, value_dim;
  Decay decay;
  float scale = 0.75f;
  Floats q, k, v, row_decay, removal, taken, state;
};

void ForEachStep(const std::function<void(const Step&)>& f) {
  Random random(41);
  for (const size_t value_dim : Sizes()) {
    if (value_dim > 100) continue;
    for (const Decay decay : {Decay::kNone, Decay::kScalar, Decay::kByRow}) {
      f(Step(random, 1 + value_dim % 4, 1 + (value_dim * 7) % 19, value_dim, decay));
    }
  }
}

// The state: M products of the removal key, then three of a cell; o: M more, of cells, and the scale. The reference rounds cells
// once, which it reads again.
double Bound(const Step& s, const std::vector<double>& sums, size_t i) {
  return (2.0 * static_cast<double>(s.features) + 6) * kU * sums[i] + kTiny;
}

TEST(ReplaceStep, TheReferenceIsTheEquation) {
  ForEachStep([](const Step& s) {
    const Floats found = s.Run(Reference(), Place::kEnd);
    const std::vector<double> expected = s.Exact(false), sums = s.Exact(true);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 3 * kU * sums[i] + kTiny) << i;
  });
}

TEST(ReplaceStep, TablesAgreeWithTheReference) {
  ForEachTable([](const Kernels& kernels) {
    ForEachStep([&](const Step& s) {
      const std::vector<double> sums = s.Exact(true);
      const Floats expected = s.Run(Reference(), Place::kEnd);
      for (const Place place : {Place::kEnd, Place::kShifted}) {
        ExpectNear("o and state", expected, s.Run(kernels, place), [&](size_t i) { return Bound(s, sums, i); });
      }
    });
  });
}

// With r = k, taken = beta k, v scaled by beta and no decay it is the delta rule.
TEST(ReplaceStep, ContainsTheDeltaRule) {
  ForEachTable([](const Kernels& kernels) {
    Random random(42);
    Step s(random, 2, 9, 13, Decay::kNone);
    const float beta = 0.625f;
    Buffer<float> q(s.q, Place::kEnd), k(s.k, Place::kEnd), v(s.v, Place::kEnd), state(s.state, Place::kEnd);
    Buffer<float> o(s.queries * s.value_dim, Place::kEnd), scratch(s.value_dim, Place::kEnd);
    kernels.delta_step({s.queries, s.features, s.value_dim, q.data(), k.data(), v.data(), 1.0f, nullptr, beta, 0, s.scale, true,
                        state.data(), nullptr, o.data(), scratch.data()});
    Floats expected = o.values();
    for (const float cell : state.values()) expected.push_back(cell);
    s.removal = s.taken = s.k;
    for (float& x : s.taken) x *= beta;
    for (float& x : s.v) x *= beta;
    const std::vector<double> sums = s.Exact(true);
    ExpectNear("o and state", expected, s.Run(kernels, Place::kEnd), [&](size_t i) { return 2 * Bound(s, sums, i); });
  });
}

TEST(ReplaceStep, ANanOfVStaysInItsColumn) {
  ForEachTable([](const Kernels& kernels) {
    Random random(43);
    Step s(random, 2, 5, 11, Decay::kByRow);
    s.v[7] = std::nanf("");
    const Floats found = s.Run(kernels, Place::kEnd);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i % s.value_dim == 7) << i;
  });
}

}  // namespace
}  // namespace tarn::testing
