// The linear state: every table against the reference, chunks against steps, the reference against closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// A state, and a stream of tokens to run through it.
struct Stream {
  size_t tokens, queries, features, value_dim;
  DenMode mode;
  bool gated;
  float eps, scale;
  Floats phi_q;  // [C, G, M]
  Floats phi_k, v, log_decay, write, state, norm;
  Floats row_decay;  // [C, M], or empty; then there are steps only

  Stream(Random& random, size_t c, size_t g, size_t m, size_t dv, DenMode den, bool gate, float phi_low)
      : tokens(c), queries(g), features(m), value_dim(dv), mode(den), gated(gate), eps(0.25f), scale(0.75f) {
    phi_q = random.Uniform(c * g * m, phi_low, 1.0f);
    phi_k = random.Uniform(c * m, phi_low, 1.0f);
    v = random.Uniform(c * dv, -1.0f, 1.0f);
    log_decay = random.Uniform(c, -0.7f, 0.0f);
    if (c > 3) log_decay[c / 2] = -30.0f;  // a gate that forgets
    write = random.Uniform(c, 0.0f, 1.0f);
    state = random.Uniform(m * dv, -1.0f, 1.0f);
    norm = random.Uniform(m, 0.5f, 1.0f);
  }

  // Magnitudes: every sum becomes the sum of its absolute terms.
  Stream Magnitude() const {
    Stream s = *this;
    s.mode = DenMode::kNone;
    s.scale = 1.0f;
    for (Floats* values : {&s.phi_q, &s.phi_k, &s.v, &s.state, &s.norm}) *values = Abs(*values);
    return s;
  }
  // The same with z for S and 1 for v: its output is the denominator.
  Stream Denominator() const {
    Stream s = *this;
    s.mode = DenMode::kNone;
    s.scale = 1.0f;
    s.value_dim = 1;
    s.v.assign(tokens, 1.0f);
    s.state = norm;
    return s;
  }
};

struct Result {
  Floats o;  // [C, G, dv]
  Floats state, norm;
};

// `together` steps in a call.
Result RunSteps(const Kernels& table, const Stream& s, Place place = Place::kEnd, size_t together = 1) {
  Buffer<float> state(s.state, place), norm(s.norm, place);
  Result result;
  for (size_t begin = 0; begin < s.tokens; begin += together) {
    struct Token {
      Buffer<float> q, k, v, row_decay, o;
    };
    std::vector<Token> tokens;
    std::vector<LinearStepArgs> steps;
    for (size_t t = begin; t < std::min(begin + together, s.tokens); ++t) {
      const auto slice = [&](const Floats& all, size_t n) {
        return Buffer<float>(Floats(all.begin() + static_cast<ptrdiff_t>(t * n), all.begin() + static_cast<ptrdiff_t>((t + 1) * n)),
                             place);
      };
      tokens.push_back({slice(s.phi_q, s.queries * s.features), slice(s.phi_k, s.features), slice(s.v, s.value_dim),
                        slice(s.row_decay, s.row_decay.empty() ? 0 : s.features), Buffer<float>(s.queries * s.value_dim, place)});
      Token& token = tokens.back();
      steps.push_back({s.queries, s.features, s.value_dim, token.q.data(), token.k.data(), token.v.data(),
                       s.gated ? std::exp(s.log_decay[t]) : 1.0f, s.row_decay.empty() ? nullptr : token.row_decay.data(),
                       s.gated ? s.write[t] : 1.0f, s.mode, s.eps, s.scale, state.data(),
                       s.mode == DenMode::kNone ? nullptr : norm.data(), token.o.data()});
    }
    table.linear_steps(steps.size(), steps.data());
    for (Token& token : tokens) {
      for (const float value : token.o.values()) result.o.push_back(value);
    }
  }
  result.state = state.values();
  result.norm = norm.values();
  return result;
}

// The tokens in chunks of at most `chunk`, with rows of v and o apart.
Result RunChunks(const Kernels& table, const Stream& s, size_t chunk, Place place = Place::kEnd) {
  Buffer<float> state(s.state, place), norm(s.norm, place);
  const size_t row = s.queries * s.value_dim, o_stride = row + 3, v_stride = s.value_dim + 1;
  Buffer<float> o(StridedSize(s.tokens, row, o_stride), place);
  Buffer<float> v(Strided(s.v, s.value_dim, v_stride), place), k(s.phi_k, place), log_decay(s.log_decay, place),
      write(s.write, place);
  for (size_t first = 0; first < s.tokens; first += chunk) {
    const size_t c = std::min(chunk, s.tokens - first);
    Floats phi_q;  // [G, c, M] of [C, G, M]
    for (size_t g = 0; g < s.queries; ++g) {
      for (size_t t = first; t < first + c; ++t) {
        const float* from = &s.phi_q[(t * s.queries + g) * s.features];
        phi_q.insert(phi_q.end(), from, from + s.features);
      }
    }
    Buffer<float> q(phi_q, place), scratch(LinearChunkScratch(c, s.features, s.value_dim), place);
    table.linear_chunk({c, s.queries, s.features, s.value_dim, q.data(), k.data() + first * s.features, v.data() + first * v_stride,
                        v_stride, s.gated ? log_decay.data() + first : nullptr, s.gated ? write.data() + first : nullptr, s.mode,
                        s.eps, s.scale, state.data(), s.mode == DenMode::kNone ? nullptr : norm.data(), o.data() + first * o_stride,
                        o_stride, scratch.data()});
  }
  return {Unstrided(o.values(), row, o_stride), state.values(), norm.values()};
}

// The whole stream through the reference.
Result RunReference(const Stream& s) {
  return s.row_decay.empty() ? RunChunks(Reference(), s, s.tokens) : RunSteps(Reference(), s);
}

// Fails unless two runs agree. Roundings per term of a sum of M + C products: a decay per token and two products in each form,
// the decays' own exponentials 3 each where the forms take them apart, the running state 3 per token: 8 C + M + 20 covers both
// forms.
void Compare(const Stream& s, const Result& expected, const Result& actual) {
  const double u = (8.0 * static_cast<double>(s.tokens) + static_cast<double>(s.features) + 20.0) * kU;
  const Result size = RunReference(s.Magnitude());
  const bool divides = s.mode != DenMode::kNone;
  const Floats den = divides ? RunReference(s.Denominator()).o : Floats();
  const Floats den_size = divides ? RunReference(s.Denominator().Magnitude()).o : Floats();
  ExpectNear("o", expected.o, actual.o, [&](size_t i) {
    if (!divides) return u * static_cast<double>(s.scale) * size.o[i];
    const size_t row = i / s.value_dim;
    double d = den[row];
    if (s.mode == DenMode::kAdd) d += s.eps;
    if (s.mode == DenMode::kAbsClampMin) d = std::fabs(d);
    if (s.mode != DenMode::kAdd) d = std::fmax(d, s.eps);
    const double left = std::fabs(d) - u * den_size[row];  // what may remain of the divisor
    return (u * static_cast<double>(s.scale) * size.o[i] + u * den_size[row] * std::fabs(expected.o[i])) / left;
  });
  ExpectNear("S", expected.state, actual.state, [&](size_t i) { return u * size.state[i]; });
  if (!divides) return;
  const Result norm_size = RunReference(s.Denominator().Magnitude());
  ExpectNear("z", expected.norm, actual.norm, [&](size_t i) { return u * norm_size.state[i]; });
}

constexpr DenMode kModes[] = {DenMode::kNone, DenMode::kAdd, DenMode::kClampMin, DenMode::kAbsClampMin};

TEST(LinearState, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const size_t size : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const DenMode mode = kModes[(size + queries) % 4];
        for (const bool gated : {false, true}) {
          const Place place = gated ? Place::kEnd : Place::kShifted;
          const Stream s(random, 2, queries, 1 + (size * 3) % 70, size, mode, gated, 0.0f);
          Compare(s, RunSteps(Reference(), s, place), RunSteps(kernels, s, place));
        }
      }
    }
  });
}

// GLA: a decay per row, alone and with a scalar one, some of them 0.
TEST(LinearState, RowDecayOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(9);
    for (const size_t size : Sizes()) {
      for (const bool gated : {false, true}) {
        const size_t queries = 1 + size % 3, features = 1 + (size * 3) % 70;
        Stream s(random, 3, queries, features, size, kModes[size % 4], gated, 0.0f);
        s.row_decay = random.Uniform(s.tokens * features, 0.0f, 1.0f);
        for (size_t i = 0; i < s.row_decay.size(); i += 7) s.row_decay[i] = i % 2 == 0 ? 0.0f : 1.0f;
        const Place place = gated ? Place::kEnd : Place::kShifted;
        Compare(s, RunSteps(Reference(), s, place), RunSteps(kernels, s, place));
      }
    }
  });
}

// o_t = sum_{i <= t} sum_r q_tr (prod_{i < j <= t} a_jr) k_ir v_i (MATH 0.1, GLA).
TEST(LinearState, RowDecayOfTheReferenceIsTheDirectSum) {
  Random random(10);
  Stream s(random, 20, 1, 9, 5, DenMode::kNone, false, -1.0f);
  s.row_decay = random.Uniform(s.tokens * s.features, 0.0f, 1.0f);
  s.scale = 1.0f;
  s.state.assign(s.state.size(), 0.0f);
  const Result result = RunSteps(Reference(), s);
  for (size_t t = 0; t < s.tokens; ++t) {
    for (size_t e = 0; e < s.value_dim; ++e) {
      double sum = 0, size = 0;
      for (size_t r = 0; r < s.features; ++r) {
        double left = s.phi_q[t * s.features + r];
        for (size_t i = t + 1; i-- > 0; left *= s.row_decay[i * s.features + r]) {
          const double term = left * s.phi_k[i * s.features + r] * s.v[i * s.value_dim + e];
          sum += term;
          size += std::fabs(term);
        }
      }
      // Every token rounds the state once; the output is rounded once more.
      EXPECT_NEAR(result.o[t * s.value_dim + e], sum, static_cast<double>(t + 2) * kU * size) << t << " " << e;
    }
  }
}

// Features of both signs, whose denominators are near zero, negative and clamped.
TEST(LinearState, GuardedDenominators) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (const DenMode mode : {DenMode::kClampMin, DenMode::kAbsClampMin}) {
      for (int round = 0; round < 20; ++round) {
        const Stream s(random, 5, 2, 33, 17, mode, round % 2 == 0, -1.0f);
        Compare(s, RunSteps(Reference(), s), RunSteps(kernels, s));
        Compare(s, RunChunks(Reference(), s, 5), RunChunks(kernels, s, 5));
      }
    }
  });
}

TEST(LinearState, ChunkOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (size_t tokens = 1; tokens <= 35; ++tokens) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const bool gated = tokens % 2 == 0;
        const size_t features = 1 + (tokens * 7 + queries) % 37, value_dim = 1 + (tokens * 5 + queries) % 37;
        const Stream s(random, tokens, queries, features, value_dim, kModes[(tokens + queries) % 4], gated, 0.0f);
        const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
        Compare(s, RunChunks(Reference(), s, tokens, place), RunChunks(kernels, s, tokens, place));
      }
    }
  });
}

TEST(LinearState, ChunksEqualSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(5);
    for (const bool gated : {false, true}) {
      for (const size_t tokens : {5, 40, 64}) {
        const Stream s(random, tokens, 2, 128, 64, DenMode::kClampMin, gated, 0.0f);
        const Result steps = RunSteps(kernels, s);
        for (const size_t chunk : {size_t{1}, size_t{7}, size_t{16}, tokens}) Compare(s, steps, RunChunks(kernels, s, chunk));
      }
    }
  });
}

TEST(LinearState, StepsTogetherHaveTheBitsOfSingleSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(12);
    for (const auto& [features, value_dim] : {std::pair<size_t, size_t>{128, 128}, {128, 64}, {37, 81}, {1, 1}, {5, 300}}) {
      for (const size_t queries : {1, 2}) {
        for (const bool gated : {false, true}) {
          const Stream s(random, 11, queries, features, value_dim, DenMode::kClampMin, gated, 0.0f);
          const Result expected = RunSteps(kernels, s);
          for (const size_t together : {2, 3, 11}) {
            const Place place = together % 2 == 0 ? Place::kEnd : Place::kShifted;
            const Result actual = RunSteps(kernels, s, place, together);
            EXPECT_EQ(actual.o, expected.o) << features << " x " << value_dim;
            EXPECT_EQ(actual.state, expected.state) << features << " x " << value_dim;
            EXPECT_EQ(actual.norm, expected.norm) << features << " x " << value_dim;
          }
        }
      }
    }
  });
}

// Decays that multiply to 0 within a chunk: nothing overflows, nothing is NaN.
TEST(LinearState, DeepDecay) {
  ForEachTable([](const Kernels& kernels) {
    Random random(6);
    Stream s(random, 40, 1, 16, 16, DenMode::kClampMin, true, 0.0f);
    for (size_t t = 0; t < s.tokens; ++t) s.log_decay[t] = t % 3 == 0 ? -1000.0f : -40.0f;
    Compare(s, RunChunks(Reference(), s, 40), RunChunks(kernels, s, 40));
    Compare(s, RunSteps(kernels, s), RunChunks(kernels, s, 40));
  });
}

// RFA eq. 6 written as what it is: o_t = sum_i (phi q_t . phi k_i) v_i / sum_i (phi q_t . phi k_i).
TEST(LinearState, ReferenceIsTheDirectSum) {
  Random random(7);
  Stream s(random, 20, 1, 9, 5, DenMode::kAdd, false, 0.0f);
  s.eps = 0.0f;
  s.scale = 1.0f;
  s.state.assign(s.state.size(), 0.0f);
  s.norm.assign(s.norm.size(), 0.0f);
  for (const Result& result : {RunSteps(Reference(), s), RunChunks(Reference(), s, 20)}) {
    for (size_t t = 0; t < s.tokens; ++t) {
      std::vector<double> sum(s.value_dim, 0.0);
      double total = 0;
      for (size_t i = 0; i <= t; ++i) {
        double a = 0;
        for (size_t r = 0; r < s.features; ++r) a += static_cast<double>(s.phi_q[t * s.features + r]) * s.phi_k[i * s.features + r];
        for (size_t e = 0; e < s.value_dim; ++e) sum[e] += a * s.v[i * s.value_dim + e];
        total += a;
      }
      for (size_t e = 0; e < s.value_dim; ++e) {
        EXPECT_NEAR(result.o[t * s.value_dim + e], sum[e] / total, 4.0 * static_cast<double>(t + 1) * kU) << t << " " << e;
      }
    }
  }
}

// MATH 1.2.4: S and z are convex sums, so the first token of a fresh state reads its own value whatever the gate is.
TEST(LinearState, FirstGatedTokenReadsItsOwnValue) {
  Random random(8);
  Stream s(random, 1, 1, 6, 4, DenMode::kAdd, true, 0.1f);
  s.eps = 0.0f;
  s.scale = 1.0f;
  s.state.assign(s.state.size(), 0.0f);
  s.norm.assign(s.norm.size(), 0.0f);
  s.write[0] = 0.007f;
  for (const Result& result : {RunSteps(Reference(), s), RunChunks(Reference(), s, 1)}) {
    for (size_t e = 0; e < 4; ++e) EXPECT_NEAR(result.o[e], s.v[e], 10 * kU);
  }
}

}  // namespace
}  // namespace tarn::testing
