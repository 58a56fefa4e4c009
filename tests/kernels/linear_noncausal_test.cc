// A noncausal linear memory: every table against the reference, blocks against the whole, the reference against the definition.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr DenMode kModes[] = {DenMode::kNone, DenMode::kAdd, DenMode::kClampMin, DenMode::kAbsClampMin};

// A memory that is not empty, keys for it, and queries.
struct Case {
  size_t tokens, rows, queries, features, value_dim;
  DenMode mode;
  bool weighted;
  float carry = 1.0f, eps = 0.25f, scale = 0.75f;
  Floats phi_k, v, write;  // [C, M], [C, dv], [C]
  Floats phi_q;            // [R, G, M]
  Floats state, norm;      // [M, dv], [M]

  Case(Random& random, size_t c, size_t r, size_t g, size_t m, size_t dv, DenMode den, bool weights)
      : tokens(c), rows(r), queries(g), features(m), value_dim(dv), mode(den), weighted(weights) {
    if (weighted) carry = random.Uniform(0.0f, 1.0f);
    phi_k = random.Uniform(c * m, -0.2f, 1.0f);
    v = random.Uniform(c * dv, -1.0f, 1.0f);
    write = random.Uniform(c, 0.0f, 1.0f);
    phi_q = random.Uniform(r * g * m, -0.2f, 1.0f);
    state = random.Uniform(m * dv, -1.0f, 1.0f);
    norm = random.Uniform(m, 0.5f, 1.0f);
  }
  // Every sum becomes the sum of its absolute terms.
  Case Magnitude() const {
    Case c = *this;
    c.mode = DenMode::kNone;
    c.scale = 1.0f;
    for (Floats* values : {&c.phi_k, &c.v, &c.phi_q, &c.state, &c.norm}) *values = Abs(*values);
    return c;
  }
  bool divides() const { return mode != DenMode::kNone; }
};

struct Memory {
  Floats state, norm;
};

// Writes all keys, at most `block` at a time; the carry is that of the first block.
Memory Write(const Kernels& table, const Case& c, size_t block, Place place = Place::kEnd) {
  Buffer<float> state(c.state, place), norm(c.norm, place), k(c.phi_k, place), write(c.write, place);
  const size_t v_stride = c.value_dim + 3;
  Buffer<float> v(Strided(c.v, c.value_dim, v_stride), place);
  for (size_t first = 0; first < c.tokens; first += block) {
    const size_t count = std::min(block, c.tokens - first);
    Buffer<float> scratch(count * c.value_dim, place);
    table.linear_write({count, c.features, c.value_dim, k.data() + first * c.features, v.data() + first * v_stride, v_stride,
                        first == 0 ? c.carry : 1.0f, c.weighted ? write.data() + first : nullptr, state.data(), norm.data(),
                        scratch.data()});
  }
  return {state.values(), norm.values()};
}

Floats Read(const Kernels& table, const Case& c, Place place = Place::kEnd) {
  Buffer<float> q(c.phi_q, place), state(c.state, place), norm(c.norm, place);
  const size_t row = c.queries * c.value_dim, o_stride = row + 2;
  Buffer<float> o(StridedSize(c.rows, row, o_stride), place);
  table.linear_read({c.rows, c.queries, c.features, c.value_dim, q.data(), state.data(), c.divides() ? norm.data() : nullptr,
                     c.mode, c.eps, c.scale, o.data(), o_stride});
  return Unstrided(o.values(), row, o_stride);
}

// A sum of C products and the old cell, each product with two roundings more for its weight and the carry.
void CompareWrites(const Case& c, const Memory& expected, const Memory& actual) {
  const double u = (static_cast<double>(c.tokens) + 5) * kU;
  const Memory size = Write(Reference(), c.Magnitude(), c.tokens);
  ExpectNear("S", expected.state, actual.state, [&](size_t i) { return u * size.state[i]; });
  ExpectNear("z", expected.norm, actual.norm, [&](size_t i) { return u * size.norm[i]; });
}

// Sums of M products; the quotient, the product with it and the oracle: 4 more. What is divided by moves by its own error.
void CompareReads(const Case& c, const Floats& expected, const Floats& actual) {
  const double u = (static_cast<double>(c.features) + 5) * kU, scale = static_cast<double>(c.scale);
  const Floats size = Read(Reference(), c.Magnitude());
  ExpectNear("o", expected, actual, [&](size_t i) {
    if (!c.divides()) return u * scale * size[i];
    double den = 0, den_size = 0;
    for (size_t r = 0; r < c.features; ++r) {
      const double term = static_cast<double>(c.phi_q[i / c.value_dim * c.features + r]) * c.norm[r];
      den += term;
      den_size += std::fabs(term);
    }
    if (c.mode == DenMode::kAdd) den += static_cast<double>(c.eps);
    if (c.mode == DenMode::kAbsClampMin) den = std::fabs(den);
    if (c.mode != DenMode::kAdd) den = std::fmax(den, static_cast<double>(c.eps));
    const double left = std::fabs(den) - u * (den_size + static_cast<double>(c.eps));  // what may remain of the divisor
    return (u * scale * size[i] + u * (den_size + static_cast<double>(c.eps)) * std::fabs(expected[i])) / left;
  });
}

TEST(LinearNoncausal, EveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t size : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const size_t rows = 1 + (size + queries) % 9, features = 1 + (size * 3 + queries) % 70, dv = 1 + (size * 5) % 67;
        const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
        const Case c(random, size, rows, queries, features, dv, kModes[(size + queries) % 4], size % 2 == 0);
        CompareWrites(c, Write(Reference(), c, c.tokens, place), Write(kernels, c, c.tokens, place));
        CompareReads(c, Read(Reference(), c, place), Read(kernels, c, place));
      }
    }
  });
}

// Cut into blocks, and without z.
TEST(LinearNoncausal, BlocksEqualTheWhole) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const bool weighted : {false, true}) {
      const Case c(random, 150, 1, 1, 33, 20, DenMode::kAdd, weighted);
      const Memory whole = Write(Reference(), c, c.tokens);
      for (const size_t block : {size_t{1}, size_t{7}, size_t{64}}) CompareWrites(c, whole, Write(kernels, c, block));
      Floats state = c.state;
      kernels.linear_write({c.tokens, c.features, c.value_dim, c.phi_k.data(), c.v.data(), c.value_dim, c.carry, nullptr,
                            state.data(), nullptr, nullptr});
      Case unweighted = c;
      unweighted.weighted = false;
      CompareWrites(unweighted, Write(Reference(), unweighted, c.tokens), {state, Write(kernels, unweighted, c.tokens).norm});
    }
  });
}

// What a row reads does not depend on the rows beside it, to the last bit: beams and tasks may be cut as they come.
TEST(LinearNoncausal, RowsReadAlike) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (const size_t queries : {1, 3}) {
      const Case c(random, 1, 13, queries, 37, 21, DenMode::kAdd, false);
      const Floats all = Read(kernels, c);
      const size_t row = queries * c.value_dim;
      for (size_t r = 0; r < c.rows; ++r) {
        Case one = c;
        one.rows = 1;
        one.phi_q.assign(c.phi_q.begin() + static_cast<ptrdiff_t>(r * queries * c.features),
                         c.phi_q.begin() + static_cast<ptrdiff_t>((r + 1) * queries * c.features));
        const Floats part(all.begin() + static_cast<ptrdiff_t>(r * row), all.begin() + static_cast<ptrdiff_t>((r + 1) * row));
        ExpectEqual("o", part, Read(kernels, one));
      }
    }
  });
}

// RFA eq. 5 written as what it is: o_t = sum_i (phi q_t . phi k_i) v_i / sum_i (phi q_t . phi k_i).
TEST(LinearNoncausal, ReferenceIsTheDirectSum) {
  Random random(4);
  Case c(random, 20, 6, 2, 9, 5, DenMode::kAdd, false);
  c.eps = 0.0f;
  c.scale = 1.0f;
  c.phi_k = Abs(c.phi_k);
  c.phi_q = Abs(c.phi_q);
  c.state.assign(c.state.size(), 0.0f);
  c.norm.assign(c.norm.size(), 0.0f);
  const Memory memory = Write(Reference(), c, 7);
  Case reader = c;
  reader.state = memory.state;
  reader.norm = memory.norm;
  const Floats o = Read(Reference(), reader);
  for (size_t row = 0; row < c.rows * c.queries; ++row) {
    std::vector<double> sum(c.value_dim, 0.0);
    double total = 0;
    for (size_t i = 0; i < c.tokens; ++i) {
      double a = 0;
      for (size_t r = 0; r < c.features; ++r) a += static_cast<double>(c.phi_q[row * c.features + r]) * c.phi_k[i * c.features + r];
      for (size_t e = 0; e < c.value_dim; ++e) sum[e] += a * c.v[i * c.value_dim + e];
      total += a;
    }
    // S and z are rounded once a block; values are at most 1.
    for (size_t e = 0; e < c.value_dim; ++e) EXPECT_NEAR(o[row * c.value_dim + e], sum[e] / total, 10 * kU) << row << " " << e;
  }
}

}  // namespace
}  // namespace tarn::testing
