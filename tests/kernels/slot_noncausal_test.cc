// Noncausal slots: every table against the reference, blocks against the whole, the reference against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// Slots that are not empty, tokens for them, and queries.
struct Case {
  size_t tokens, rows, queries, slots, key_dim, value_dim;
  float scale;
  Floats k, v, weight, carry;  // [C, d], [C, dv], [C, n], [n] or empty
  Floats q;                    // [R, G, d]
  Floats keys, values, bias;   // [d, n], [n, dv], [n] or empty

  Case(Random& random, size_t c, size_t r, size_t g, size_t n, size_t d, size_t dv)
      : tokens(c), rows(r), queries(g), slots(n), key_dim(d), value_dim(dv), scale(1.0f / std::sqrt(static_cast<float>(d))) {
    k = random.Uniform(c * d, -2.0f, 2.0f);
    v = random.Uniform(c * dv, -1.0f, 1.0f);
    weight = random.Uniform(c * n, -1.0f, 1.0f);
    carry = random.Uniform(n, 0.0f, 1.0f);
    q = random.Uniform(r * g * d, -2.0f, 2.0f);
    keys = random.Uniform(d * n, -2.0f, 2.0f);
    values = random.Uniform(n * dv, -1.0f, 1.0f);
    bias.assign(n, 0.0f);
  }
  Case Magnitude() const {
    Case c = *this;
    for (Floats* all : {&c.k, &c.v, &c.weight, &c.keys, &c.values}) *all = Abs(*all);
    return c;
  }
};

struct Slots {
  Floats keys, values;
};

// Writes all tokens, at most `block` at a time; the carry is that of the first block.
Slots Write(const Kernels& table, const Case& c, size_t block, Place place = Place::kEnd) {
  Buffer<float> keys(c.keys, place), values(c.values, place), weight(c.weight, place), carry(c.carry, place);
  const size_t k_stride = c.key_dim + 1, v_stride = c.value_dim + 2;
  Buffer<float> k(Strided(c.k, c.key_dim, k_stride), place), v(Strided(c.v, c.value_dim, v_stride), place);
  for (size_t first = 0; first < c.tokens; first += block) {
    table.slot_write({std::min(block, c.tokens - first), c.slots, c.key_dim, c.value_dim, k.data() + first * k_stride, k_stride,
                      v.data() + first * v_stride, v_stride, first == 0 && !c.carry.empty() ? carry.data() : nullptr,
                      weight.data() + first * c.slots, keys.data(), values.data()});
  }
  return {keys.values(), values.values()};
}

// The same in two calls, of K~ and of V~ alone.
Slots WriteHalves(const Kernels& table, const Case& c) {
  const Place place = Place::kEnd;
  Buffer<float> keys(c.keys, place), values(c.values, place), weight(c.weight, place), carry(c.carry, place), k(c.k, place),
      v(c.v, place);
  for (const bool of_keys : {true, false}) {
    table.slot_write({c.tokens, c.slots, of_keys ? c.key_dim : 0, of_keys ? 0 : c.value_dim, k.data(), c.key_dim, v.data(),
                      c.value_dim, carry.data(), weight.data(), keys.data(), values.data()});
  }
  return {keys.values(), values.values()};
}

Floats Read(const Kernels& table, const Case& c, Place place = Place::kEnd) {
  const size_t q_row = c.queries * c.key_dim, o_row = c.queries * c.value_dim;
  Buffer<float> q(Strided(c.q, q_row, q_row + 5), place), keys(c.keys, place), values(c.values, place), bias(c.bias, place);
  Buffer<float> o(StridedSize(c.rows, o_row, o_row + 3), place), scratch(c.rows * c.queries * c.slots, place);
  table.slot_read({c.rows, c.queries, c.slots, c.key_dim, c.value_dim, q.data(), q_row + 5, keys.data(), values.data(),
                   c.bias.empty() ? nullptr : bias.data(), c.scale, o.data(), o_row + 3, scratch.data()});
  return Unstrided(o.values(), o_row, o_row + 3);
}

// A sum of C products, the old cell and its carry.
void CompareWrites(const Case& c, const Slots& expected, const Slots& actual) {
  const double u = (static_cast<double>(c.tokens) + 4) * kU;
  const Slots size = Write(Reference(), c.Magnitude(), c.tokens);
  ExpectNear("K~", expected.keys, actual.keys, [&](size_t i) { return u * size.keys[i]; });
  ExpectNear("V~", expected.values, actual.values, [&](size_t i) { return u * size.values[i]; });
}

// A logit sums d products of at most 4, the scale and the bias: delta. A probability is off by 2 delta, its exponential and sum n +
// 8; o by the same fraction of the largest value, 1, and by its own sum of n products.
void CompareReads(const Case& c, const Floats& expected, const Floats& actual) {
  const double n = static_cast<double>(c.slots), d = static_cast<double>(c.key_dim);
  float largest_q = 0, largest_bias = 0;
  for (const float x : c.q) largest_q = std::fmax(largest_q, std::fabs(x));
  for (const float b : c.bias) largest_bias = std::fmax(largest_bias, std::isfinite(b) ? std::fabs(b) : 0.0f);
  const double delta = (static_cast<double>(c.scale) * d * 2.0 * largest_q * (d + 4) + largest_bias) * kU;
  ExpectNear("o", expected, actual, [&](size_t) { return 2 * delta + (2 * n + 12) * kU; });
}

TEST(SlotNoncausal, EveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t slots : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const size_t tokens = 1 + (slots * 3 + queries) % 40, rows = 1 + (slots + queries) % 9;
        Case c(random, tokens, rows, queries, slots, 1 + (slots * 7 + queries) % 40, 1 + (slots * 5 + queries * 3) % 70);
        for (size_t j = 0; j < slots; ++j) c.bias[j] = j % 4 == 1 ? -HUGE_VALF : std::log(static_cast<float>(1 + j));
        if (queries == 1) c.bias.clear();
        if (queries == 2) c.carry.clear();
        const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
        CompareWrites(c, Write(Reference(), c, tokens, place), Write(kernels, c, tokens, place));
        CompareReads(c, Read(Reference(), c, place), Read(kernels, c, place));
      }
    }
  });
}

TEST(SlotNoncausal, BlocksEqualTheWhole) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    const Case c(random, 150, 1, 1, 19, 24, 20);
    const Slots whole = Write(Reference(), c, c.tokens);
    for (const size_t block : {size_t{1}, size_t{7}, size_t{64}}) CompareWrites(c, whole, Write(kernels, c, block));
    CompareWrites(c, whole, WriteHalves(kernels, c));
  });
}

// Logits of +-1e3 pick one slot; with every slot masked the output is 0.
TEST(SlotNoncausal, LargeLogitsAndNoSlots) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    Case c(random, 1, 5, 2, 21, 8, 10);
    for (float& x : c.q) x *= 300.0f;
    CompareReads(c, Read(Reference(), c), Read(kernels, c));
    std::fill(c.bias.begin(), c.bias.end(), -HUGE_VALF);
    ExpectEqual("o", Floats(c.rows * c.queries * c.value_dim, 0.0f), Read(kernels, c));
  });
}

// ABC eq. 4 as it stands, in f64.
TEST(SlotNoncausal, ReferenceIsTheDefinition) {
  Random random(4);
  Case c(random, 9, 3, 2, 5, 4, 3);
  c.carry.clear();
  c.keys.assign(c.keys.size(), 0.0f);
  c.values.assign(c.values.size(), 0.0f);
  for (size_t j = 0; j < c.slots; ++j) c.bias[j] = std::log(static_cast<float>(1 + j));
  const Slots slots = Write(Reference(), c, 4);
  Case reader = c;
  reader.keys = slots.keys;
  reader.values = slots.values;
  const Floats o = Read(Reference(), reader);
  const auto cell = [&](const Floats& rows, size_t dim, size_t e, size_t j) {
    double sum = 0;
    for (size_t i = 0; i < c.tokens; ++i) sum += static_cast<double>(c.weight[i * c.slots + j]) * rows[i * dim + e];
    return sum;
  };
  for (size_t row = 0; row < c.rows * c.queries; ++row) {
    std::vector<double> p(c.slots);
    double total = 0;
    for (size_t j = 0; j < c.slots; ++j) {
      double logit = 0;
      for (size_t x = 0; x < c.key_dim; ++x) logit += cell(c.k, c.key_dim, x, j) * c.q[row * c.key_dim + x];
      p[j] = std::exp(static_cast<double>(c.scale) * logit + c.bias[j]);
      total += p[j];
    }
    for (size_t e = 0; e < c.value_dim; ++e) {
      double sum = 0;
      for (size_t j = 0; j < c.slots; ++j) sum += p[j] / total * cell(c.v, c.value_dim, e, j);
      EXPECT_NEAR(o[row * c.value_dim + e], sum, 200 * kU) << row << " " << e;
    }
  }
}

}  // namespace
}  // namespace tarn::testing
