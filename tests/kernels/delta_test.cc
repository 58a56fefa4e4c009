// The delta rule: every table against the reference, chunks against steps, the reference against the update as a matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// What the state is multiplied by before a token is written.
enum class Decay { kNone, kScalar, kByRow };

enum class Keys { kUnit, kPositive };  // of length 1 and both signs (DeltaNet); positive with sum 1 (DPFP)

// A state, and a stream of tokens to run through it.
struct Stream {
  size_t tokens, queries, features, value_dim;
  bool normed;  // attention-normalised; then there are steps only, and z starts from nothing
  float eps = 1e-5f, scale = 0.75f;
  Floats phi_q;  // [C, G, M]
  Floats phi_k, v, beta, state;
  Decay decay;
  Floats log_decay;  // [C], kScalar
  Floats row_decay;  // [C, M], kByRow

  Stream(Random& random, size_t c, size_t g, size_t m, size_t dv, Keys keys, bool attention_normed, float most_beta = 1.0f,
         Decay kind = Decay::kNone)
      : tokens(c), queries(g), features(m), value_dim(dv), normed(attention_normed), decay(kind) {
    const float low = keys == Keys::kUnit ? -1.0f : 0.1f;
    phi_q = random.Uniform(c * g * m, low, 1.0f);
    phi_k = random.Uniform(c * m, low, 1.0f);
    for (Floats* rows : {&phi_q, &phi_k}) {
      for (size_t first = 0; first < rows->size(); first += m) {
        double squares = 0, sum = 0;
        for (size_t r = first; r < first + m; ++r) squares += std::pow(static_cast<double>((*rows)[r]), 2), sum += (*rows)[r];
        const double size = keys == Keys::kUnit ? std::sqrt(squares) : sum;
        for (size_t r = first; r < first + m; ++r) (*rows)[r] = static_cast<float>((*rows)[r] / size);
      }
    }
    v = random.Uniform(c * dv, -1.0f, 1.0f);
    beta = random.Uniform(c, 0.0f, most_beta);
    state = normed ? Floats(m * dv, 0.0f) : random.Uniform(m * dv, -1.0f, 1.0f);
    // Among them decays that forget all but nothing, and some that forget nothing at all.
    log_decay = random.Uniform(c, -0.5f, 0.0f);
    for (size_t t = 0; t < c; t += 9) log_decay[t] = t % 2 == 0 ? -40.0f : 0.0f;
    row_decay = random.Uniform(c * m, 0.0f, 1.0f);
    for (size_t i = 0; i < c * m; i += 7) row_decay[i] = i % 2 == 0 ? 0.0f : 1.0f;
  }

  float ScalarDecay(size_t token) const { return decay == Decay::kScalar ? std::exp(log_decay[token]) : 1.0f; }
  double DecayOf(size_t token, size_t row) const {
    if (decay == Decay::kScalar) return std::exp(static_cast<double>(log_decay[token]));
    return decay == Decay::kByRow ? static_cast<double>(row_decay[token * features + row]) : 1.0;
  }
};

struct Result {
  Floats o;  // [C, G, dv]
  Floats state, norm;
};

Result RunSteps(const Kernels& table, const Stream& s, Place place = Place::kEnd) {
  Buffer<float> state(s.state, place), norm(Floats(s.features, 0.0f), place);
  Result result;
  for (size_t t = 0; t < s.tokens; ++t) {
    const auto slice = [&](const Floats& all, size_t n) {
      return Buffer<float>(Floats(all.begin() + static_cast<ptrdiff_t>(t * n), all.begin() + static_cast<ptrdiff_t>((t + 1) * n)),
                           place);
    };
    Buffer<float> q = slice(s.phi_q, s.queries * s.features), k = slice(s.phi_k, s.features), v = slice(s.v, s.value_dim);
    const bool by_row = s.decay == Decay::kByRow;
    Buffer<float> decays = slice(s.row_decay, s.features);
    Buffer<float> o(s.queries * s.value_dim, place), scratch(s.value_dim + (by_row ? s.features : 0), place);
    table.delta_step({s.queries, s.features, s.value_dim, q.data(), k.data(), v.data(), s.ScalarDecay(t),
                      by_row ? decays.data() : nullptr, s.beta[t], s.eps, s.scale, t == 0, state.data(),
                      s.normed ? norm.data() : nullptr, o.data(), scratch.data()});
    for (const float value : o.values()) result.o.push_back(value);
  }
  result.state = state.values();
  result.norm = norm.values();
  return result;
}

// The tokens in chunks of at most `chunk`, with rows of v and o apart.
Result RunChunks(const Kernels& table, const Stream& s, size_t chunk, Place place = Place::kEnd) {
  const size_t row = s.queries * s.value_dim, o_stride = row + 3, v_stride = s.value_dim + 1;
  Buffer<float> state(s.state, place), o(StridedSize(s.tokens, row, o_stride), place);
  Buffer<float> v(Strided(s.v, s.value_dim, v_stride), place), k(s.phi_k, place), beta(s.beta, place);
  Buffer<float> log_decay(s.log_decay, place);
  for (size_t first = 0; first < s.tokens; first += chunk) {
    const size_t c = std::min(chunk, s.tokens - first);
    Floats phi_q;  // [G, c, M] of [C, G, M]
    for (size_t g = 0; g < s.queries; ++g) {
      for (size_t t = first; t < first + c; ++t) {
        const float* from = &s.phi_q[(t * s.queries + g) * s.features];
        phi_q.insert(phi_q.end(), from, from + s.features);
      }
    }
    Buffer<float> q(phi_q, place), scratch(DeltaChunkScratch(c, s.features, s.value_dim), place);
    table.delta_chunk({c, s.queries, s.features, s.value_dim, q.data(), k.data() + first * s.features, v.data() + first * v_stride,
                       v_stride, s.decay == Decay::kScalar ? log_decay.data() + first : nullptr, beta.data() + first, s.scale,
                       state.data(), o.data() + first * o_stride, o_stride, scratch.data()});
  }
  return {Unstrided(o.values(), row, o_stride), state.values(), Floats(s.features, 0.0f)};
}

double Dot(const float* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double Length(const float* a, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * a[i];
  return std::sqrt(sum);
}

// The stream in f64, as the update is defined, and beside it what rounding can do to each column e of S, in the 2-norm.
//
// Let U_t be what token t writes, and stored_t = |S_0| + sum_{j <= t} |k_j||U_j|, which bounds the column and every partial sum of
// it in either form. A retrieval is a sum of at most M + C terms with up to three roundings each, so U_t is off by
//   delta_t = beta (M + C + 8) u (|v| + |k| stored_{t-1}/d),  and with z by beta |v_old| times the relative error of d.
// A step maps an error in S by I - beta k k^T/d, whose norm is rho = max(1, |1 - beta |k|^2/d|), and rounds S twice:
//   err_t = rho err_{t-1} + |k| delta_t + 2 u stored_t.
// Decays, in [0, 1], make nothing larger. Each is an exponential and a product: off by 4 u, which a step adds to its roundings of
// S. The product of those between two tokens of a chunk is off by 4 C u, which every sum above has on top of its M + C + 8. The
// same holds for the chunk: an error in row t of its triangular system is an error in U_t.
struct Exact {
  std::vector<double> o, o_bound;
  std::vector<double> state, state_bound;  // [M, dv]
  std::vector<double> norm;
};

class Simulation {
 public:
  explicit Simulation(const Stream& s)
      : s_(s), state_(s.state.begin(), s.state.end()), norm_(s.features, 0.0), stored_(s.value_dim), error_(s.value_dim, 0.0) {
    for (size_t e = 0; e < s.value_dim; ++e) {
      for (size_t r = 0; r < s.features; ++r) stored_[e] += std::pow(state_[r * s.value_dim + e], 2);
      stored_[e] = std::sqrt(stored_[e]);
    }
  }

  Exact Run() {
    for (size_t t = 0; t < s_.tokens; ++t) {
      Write(t);
      for (size_t g = 0; g < s_.queries; ++g) Read(&s_.phi_q[(t * s_.queries + g) * s_.features]);
    }
    exact_.state = state_;
    for (size_t i = 0; i < state_.size(); ++i) {
      const size_t e = i % s_.value_dim;
      exact_.state_bound.push_back(error_[e] + Roundings() * stored_[e]);
    }
    exact_.norm = norm_;
    return exact_;
  }

 private:
  double Roundings() const {
    const size_t decays = s_.decay == Decay::kNone ? 0 : 4 * s_.tokens;
    return static_cast<double>(s_.features + s_.tokens + 8 + decays) * kU;
  }

  void Write(size_t t) {
    const float* k = &s_.phi_k[t * s_.features];
    const double length = Length(k, s_.features), beta = s_.beta[t];
    const double d = s_.normed && t > 0 ? Dot(k, norm_.data(), s_.features) : 1.0;
    const double d_error = s_.normed && t > 0 ? Roundings() : 0.0;  // relative: keys are positive where there is a norm
    const double growth = std::fmax(1.0, std::fabs(1.0 - beta * length * length / d));
    for (size_t e = 0; e < s_.value_dim; ++e) {
      double old = 0;
      for (size_t r = 0; r < s_.features; ++r) state_[r * s_.value_dim + e] *= s_.DecayOf(t, r);
      for (size_t r = 0; r < s_.features; ++r) old += k[r] * state_[r * s_.value_dim + e];
      old /= d;
      const double v = s_.v[t * s_.value_dim + e], written = beta * (v - old);
      const double delta = beta * (Roundings() * (std::fabs(v) + length * stored_[e] / d) + d_error * std::fabs(old));
      for (size_t r = 0; r < s_.features; ++r) state_[r * s_.value_dim + e] += k[r] * written;
      stored_[e] += length * std::fabs(written);
      error_[e] = growth * error_[e] + length * delta + (s_.decay == Decay::kNone ? 2 : 6) * kU * stored_[e];
    }
    for (size_t r = 0; r < s_.features; ++r) norm_[r] += k[r];
  }

  void Read(const float* q) {
    const double den = s_.normed ? Dot(q, norm_.data(), s_.features) + static_cast<double>(s_.eps) : 1.0;
    const double length = Length(q, s_.features), scale = s_.scale;
    for (size_t e = 0; e < s_.value_dim; ++e) {
      double sum = 0;
      for (size_t r = 0; r < s_.features; ++r) sum += q[r] * state_[r * s_.value_dim + e];
      exact_.o.push_back(scale * sum / den);
      const double error = length * (error_[e] + Roundings() * stored_[e]) + (s_.normed ? Roundings() * std::fabs(sum) : 0.0);
      exact_.o_bound.push_back(scale * error / den);
    }
  }

  const Stream& s_;
  std::vector<double> state_, norm_;
  std::vector<double> stored_, error_;  // [dv]
  Exact exact_;
};

Floats ToFloats(const std::vector<double>& x) {
  Floats y;
  for (const double value : x) y.push_back(static_cast<float>(value));
  return y;
}

// Fails unless the run is the stream as it is defined.
void Compare(const Stream& s, const Exact& exact, const Result& actual) {
  ExpectNear("o", ToFloats(exact.o), actual.o, [&](size_t i) { return exact.o_bound[i] + kU * std::fabs(exact.o[i]); });
  ExpectNear("S", ToFloats(exact.state), actual.state,
             [&](size_t i) { return exact.state_bound[i] + kU * std::fabs(exact.state[i]); });
  if (!s.normed) return;
  ExpectNear("z", ToFloats(exact.norm), actual.norm,
             [&](size_t i) { return static_cast<double>(s.tokens + 1) * kU * exact.norm[i]; });
}

TEST(DeltaRule, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t size : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8}) {
        for (const bool normed : {false, true}) {
          const Keys keys = normed || queries % 2 == 0 ? Keys::kPositive : Keys::kUnit;
          for (const Decay decay : {Decay::kNone, Decay::kScalar, Decay::kByRow}) {
            if (normed && decay != Decay::kNone) continue;
            const Stream s(random, 3, queries, 1 + (size * 3) % 70, size, keys, normed, 1.0f, decay);
            Compare(s, Simulation(s).Run(), RunSteps(kernels, s, normed ? Place::kEnd : Place::kShifted));
          }
        }
      }
    }
  });
}

TEST(DeltaRule, ChunkOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (size_t tokens = 1; tokens <= 35; ++tokens) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const size_t features = 1 + (tokens * 7 + queries) % 37, value_dim = 1 + (tokens * 5 + queries) % 37;
        const Keys keys = queries % 2 == 0 ? Keys::kPositive : Keys::kUnit;
        for (const Decay decay : {Decay::kNone, Decay::kScalar}) {
          const Stream s(random, tokens, queries, features, value_dim, keys, false, 1.0f, decay);
          Compare(s, Simulation(s).Run(), RunChunks(kernels, s, tokens, queries % 2 == 0 ? Place::kEnd : Place::kShifted));
        }
      }
    }
  });
}

// However the tokens are cut: one by one, in chunks, in chunks of another length. Strengths up to 2 turn what they remove around
// (allow_neg_eigval).
TEST(DeltaRule, ChunksEqualSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (const float most_beta : {1.0f, 2.0f}) {
      for (const size_t tokens : {5, 40, 64}) {
        for (const Decay decay : {Decay::kNone, Decay::kScalar}) {
          const Stream s(random, tokens, 2, 96, 64, Keys::kUnit, false, most_beta, decay);
          const Exact exact = Simulation(s).Run();
          Compare(s, exact, RunSteps(kernels, s));
          for (const size_t chunk : {size_t{1}, size_t{7}, size_t{16}, tokens}) Compare(s, exact, RunChunks(kernels, s, chunk));
        }
      }
    }
  });
}

// A state that forgets all of itself is the new write alone, by steps and in a chunk.
TEST(DeltaRule, DecaysOfNothingAndOfAll) {
  ForEachTable([](const Kernels& kernels) {
    Random random(7);
    Stream kept(random, 9, 2, 13, 11, Keys::kUnit, false);
    Stream same = kept;
    same.decay = Decay::kScalar;
    same.log_decay.assign(same.tokens, 0.0f);
    ExpectEqual("o of steps without decay", RunSteps(kernels, kept).o, RunSteps(kernels, same).o);
    ExpectEqual("o of a chunk without decay", RunChunks(kernels, kept, 9).o, RunChunks(kernels, same, 9).o);
    Stream gone = same;
    gone.log_decay.assign(gone.tokens, -200.0f);
    Floats last(gone.features * gone.value_dim);
    const size_t t = gone.tokens - 1;
    for (size_t i = 0; i < last.size(); ++i) {
      last[i] = gone.phi_k[t * 13 + i / 11] * gone.beta[t] * gone.v[t * 11 + i % 11];
    }
    for (const Result& result : {RunSteps(kernels, gone), RunChunks(kernels, gone, 9)}) {
      ExpectNear("S", last, result.state, [&](size_t i) { return 4 * kU * std::fabs(last[i]) + kTiny; });
    }
  });
}

TEST(DeltaRule, LongNormalisedStream) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    const Stream s(random, 60, 2, 33, 17, Keys::kPositive, true);
    Compare(s, Simulation(s).Run(), RunSteps(kernels, s));
  });
}

// Keys that are unit vectors are addresses: a write of strength 1 replaces what stood there, and leaves the rest alone.
TEST(DeltaRule, UnitVectorsAreAddresses) {
  ForEachTable([](const Kernels& kernels) {
    Random random(5);
    Stream s(random, 12, 1, 5, 9, Keys::kUnit, false);
    s.scale = 1.0f;
    s.beta.assign(s.tokens, 1.0f);
    s.phi_k.assign(s.phi_k.size(), 0.0f);
    for (size_t t = 0; t < s.tokens; ++t) s.phi_k[t * 5 + t * t % 5] = 1.0f;  // 0, 1 and 4, each several times
    s.phi_q = s.phi_k;
    Floats rows = s.state;
    for (size_t t = 0; t < s.tokens; ++t) std::copy_n(&s.v[t * 9], 9, &rows[t * t % 5 * 9]);
    for (const Result& result : {RunSteps(kernels, s), RunChunks(kernels, s, 12), RunChunks(kernels, s, 5)}) {
      ExpectNear("o", s.v, result.o, [](size_t) { return 32 * kU; });  // v - v_old and back, a few times, all below 1
      ExpectNear("S", rows, result.state, [](size_t) { return 32 * kU; });
    }
  });
}

// DPFP of a row can be all zeros. Such a key stores nothing; nothing is divided by the nothing that was stored under it.
TEST(DeltaRule, ZeroKeysStoreNothing) {
  ForEachTable([](const Kernels& kernels) {
    Random random(6);
    for (const bool normed : {false, true}) {
      Stream s(random, 6, 1, 7, 4, Keys::kPositive, normed);
      std::fill_n(s.phi_k.begin(), 2 * 7, 0.0f);
      std::fill_n(s.phi_k.begin() + 4 * 7, 7, 0.0f);
      Stream without = s;  // the same without these tokens
      for (const size_t t : {4, 1, 0}) {
        const auto erase = [t](Floats& rows, size_t n) {
          rows.erase(rows.begin() + static_cast<ptrdiff_t>(t * n), rows.begin() + static_cast<ptrdiff_t>((t + 1) * n));
        };
        erase(without.phi_k, 7);
        erase(without.phi_q, 7);
        erase(without.v, 4);
        erase(without.beta, 1);
      }
      without.tokens = 3;
      const Result steps = RunSteps(kernels, s);
      for (const float value : steps.o) EXPECT_TRUE(std::isfinite(value));
      ExpectEqual("S", RunSteps(kernels, without).state, steps.state);
      ExpectEqual("z", RunSteps(kernels, without).norm, steps.norm);
      if (normed) continue;
      ExpectNear("S of a chunk", steps.state, RunChunks(kernels, s, 6).state, [](size_t) { return 100 * kU; });
    }
  });
}

}  // namespace
}  // namespace tarn::testing
