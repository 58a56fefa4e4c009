// Slot memory: every table against the reference, chunks against steps, the reference against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// Slots, and a stream of tokens with the factors of a chunk: K~_t = carry_t K~_0 + gain_t sum weight_i x k_i.
struct Stream {
  size_t tokens, queries, slots, key_dim, value_dim;
  float scale;
  Floats q;  // [C, G, d]
  Floats k, v, carry, gain, weight, bias;
  Floats value_carry, value_gain, value_weight;  // of V~; empty: those of K~
  Floats keys, values;                           // [d, n], [n, dv]

  Stream(Random& random, size_t c, size_t g, size_t n, size_t d, size_t dv)
      : tokens(c), queries(g), slots(n), key_dim(d), value_dim(dv), scale(1.0f / std::sqrt(static_cast<float>(d))) {
    q = random.Uniform(c * g * d, -2.0f, 2.0f);
    k = random.Uniform(c * d, -2.0f, 2.0f);
    v = random.Uniform(c * dv, -1.0f, 1.0f);
    bias.assign(c * n, 0.0f);
    keys = random.Uniform(d * n, -2.0f, 2.0f);
    values = random.Uniform(n * dv, -1.0f, 1.0f);
    AddFactors(random, &carry, &gain, &weight);
  }
  void AddValueFactors(Random& random) { AddFactors(random, &value_carry, &value_gain, &value_weight); }
  bool own_values() const { return !value_carry.empty(); }

 private:
  // Controls of sums that begin with `mass`: carry = mass/z_t, gain = 1/z_t.
  void AddFactors(Random& random, Floats* of_carry, Floats* of_gain, Floats* of_weight) const {
    *of_weight = random.Uniform(tokens * slots, 0.0f, 1.0f);
    const Floats mass = random.Uniform(slots, 0.2f, 3.0f);
    Floats z = mass;
    for (size_t t = 0; t < tokens; ++t) {
      for (size_t j = 0; j < slots; ++j) {
        z[j] += (*of_weight)[t * slots + j];
        of_carry->push_back(mass[j] / z[j]);
        of_gain->push_back(1.0f / z[j]);
      }
    }
  }
};

struct Result {
  Floats o;  // [C, G, dv]
  Floats keys, values;
};

// The step of token t: a_t = carry_t / carry_{t-1}, b_t = gain_t weight_t.
Result RunSteps(const Kernels& table, const Stream& s, Place place = Place::kEnd) {
  Buffer<float> keys(s.keys, place), values(s.values, place);
  Result result;
  for (size_t t = 0; t < s.tokens; ++t) {
    Floats decay(s.slots), write(s.slots), bias(s.slots), value_decay(s.slots), value_write(s.slots);
    for (size_t j = 0; j < s.slots; ++j) {
      const size_t at = t * s.slots + j;
      decay[j] = t == 0 ? s.carry[at] : s.carry[at] / s.carry[at - s.slots];
      write[j] = s.gain[at] * s.weight[at];
      bias[j] = s.bias[at];
      if (!s.own_values()) continue;
      value_decay[j] = t == 0 ? s.value_carry[at] : s.value_carry[at] / s.value_carry[at - s.slots];
      value_write[j] = s.value_gain[at] * s.value_weight[at];
    }
    const auto slice = [&](const Floats& all, size_t n) {
      return Buffer<float>(Floats(all.begin() + static_cast<ptrdiff_t>(t * n), all.begin() + static_cast<ptrdiff_t>((t + 1) * n)),
                           place);
    };
    Buffer<float> q = slice(s.q, s.queries * s.key_dim), k = slice(s.k, s.key_dim), v = slice(s.v, s.value_dim);
    Buffer<float> a(decay, place), b(write, place), c(bias, place), value_a(value_decay, place), value_b(value_write, place);
    Buffer<float> o(s.queries * s.value_dim, place), scratch(s.queries * s.slots, place);
    table.slot_step({s.queries, s.slots, s.key_dim, s.value_dim, q.data(), k.data(), v.data(), a.data(), b.data(), c.data(),
                     s.scale, keys.data(), values.data(), o.data(), scratch.data(), s.own_values() ? value_a.data() : nullptr,
                     s.own_values() ? value_b.data() : nullptr});
    for (const float value : o.values()) result.o.push_back(value);
  }
  result.keys = keys.values();
  result.values = values.values();
  return result;
}

Result RunChunk(const Kernels& table, const Stream& s, Place place = Place::kEnd) {
  const size_t q_row = s.queries * s.key_dim, o_row = s.queries * s.value_dim;
  Buffer<float> keys(s.keys, place), values(s.values, place);
  Buffer<float> q(Strided(s.q, q_row, q_row + 5), place), k(Strided(s.k, s.key_dim, s.key_dim + 1), place);
  Buffer<float> v(Strided(s.v, s.value_dim, s.value_dim + 2), place);
  Buffer<float> carry(s.carry, place), gain(s.gain, place), weight(s.weight, place), bias(s.bias, place);
  Buffer<float> value_carry(s.value_carry, place), value_gain(s.value_gain, place), value_weight(s.value_weight, place);
  Buffer<float> o(StridedSize(s.tokens, o_row, o_row + 3), place);
  Buffer<float> scratch(SlotChunkScratch(s.tokens, s.slots, s.key_dim, s.value_dim), place);
  table.slot_chunk({s.tokens,
                    s.queries,
                    s.slots,
                    s.key_dim,
                    s.value_dim,
                    q.data(),
                    q_row + 5,
                    k.data(),
                    s.key_dim + 1,
                    v.data(),
                    s.value_dim + 2,
                    carry.data(),
                    gain.data(),
                    weight.data(),
                    bias.data(),
                    s.scale,
                    keys.data(),
                    values.data(),
                    o.data(),
                    o_row + 3,
                    scratch.data(),
                    s.own_values() ? value_carry.data() : nullptr,
                    s.own_values() ? value_gain.data() : nullptr,
                    s.own_values() ? value_weight.data() : nullptr});
  return {Unstrided(o.values(), o_row, o_row + 3), keys.values(), values.values()};
}

// The same controls seen from token `cut`: a chunk that begins where another ended.
Stream From(const Stream& s, size_t cut, const Result& before) {
  Stream rest = s;
  const auto drop = [&](Floats& all, size_t n) { all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(cut * n)); };
  rest.tokens = s.tokens - cut;
  drop(rest.q, s.queries * s.key_dim);
  drop(rest.k, s.key_dim);
  drop(rest.v, s.value_dim);
  for (Floats* all : {&rest.carry, &rest.gain, &rest.weight, &rest.bias}) drop(*all, s.slots);
  for (size_t i = 0; i < rest.carry.size(); ++i) rest.carry[i] /= s.carry[(cut - 1) * s.slots + i % s.slots];
  rest.keys = before.keys;
  rest.values = before.values;
  return rest;
}

Stream Until(const Stream& s, size_t cut) {
  Stream start = s;
  start.tokens = cut;
  start.q.resize(cut * s.queries * s.key_dim);
  start.k.resize(cut * s.key_dim);
  start.v.resize(cut * s.value_dim);
  for (Floats* all : {&start.carry, &start.gain, &start.weight, &start.bias}) all->resize(cut * s.slots);
  return start;
}

// A slot is a convex sum of the chunk's rows and its old self, so it is bounded by the largest of them (K below); each token rounds
// it 4 times in the step form and the factored sum has C products: (5 C + 8) u K. A logit sums d products on top: delta. A
// probability is off by 2 delta, its exponential and sum n + 8; o by the same fraction of the largest value, and by its own sum of
// n + C products.
void Compare(const Stream& s, const Result& expected, const Result& actual) {
  const auto largest = [](const Floats& x, const Floats& y) {
    float m = 0;
    for (const float value : x) m = std::fmax(m, std::fabs(value));
    for (const float value : y) m = std::fmax(m, std::fabs(value));
    return static_cast<double>(m);
  };
  const double c = static_cast<double>(s.tokens), n = static_cast<double>(s.slots), d = static_cast<double>(s.key_dim);
  const double big_k = largest(s.keys, s.k), big_v = largest(s.values, s.v), cell = (5 * c + 8) * kU;
  const double delta = static_cast<double>(s.scale) * d * largest(s.q, {}) * big_k * (cell + (d + c + 6) * kU);
  const double o = big_v * (2 * delta + (2 * n + c + 12) * kU + cell);
  ExpectNear("o", expected.o, actual.o, [&](size_t) { return o; });
  ExpectNear("K~", expected.keys, actual.keys, [&](size_t) { return cell * big_k; });
  ExpectNear("V~", expected.values, actual.values, [&](size_t) { return cell * big_v; });
}

TEST(SlotMemory, StepOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t slots : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const size_t key_dim = 1 + (slots * 7 + queries) % 40, value_dim = 1 + (slots * 5 + queries * 3) % 70;
        Stream s(random, 2, queries, slots, key_dim, value_dim);
        for (size_t j = 0; j < slots; j += 4) s.bias[j] = s.bias[slots + j] = -HUGE_VALF;
        const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
        Compare(s, RunSteps(Reference(), s, place), RunSteps(kernels, s, place));
      }
    }
  });
}

TEST(SlotMemory, ChunkOfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const size_t slots : Sizes()) {
      for (const size_t queries : {1, 2, 3, 8}) {
        const size_t tokens = 1 + (slots * 3 + queries) % 35;
        Stream s(random, tokens, queries, slots, 1 + (slots * 7 + queries) % 40, 1 + (slots * 5 + queries * 3) % 40);
        for (size_t i = 0; i < s.bias.size(); i += 5) s.bias[i] = -HUGE_VALF;
        const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
        Compare(s, RunChunk(Reference(), s, place), RunChunk(kernels, s, place));
      }
    }
  });
}

TEST(SlotMemory, ChunksEqualSteps) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (const size_t tokens : {2, 17, 40, 64}) {
      const Stream s(random, tokens, 2, 32, 64, 64);
      const Result steps = RunSteps(kernels, s);
      Compare(s, steps, RunChunk(kernels, s));
      for (const size_t cut : {size_t{1}, tokens / 2, tokens - 1}) {
        const Result before = RunChunk(kernels, Until(s, cut));
        Result split = RunChunk(kernels, From(s, cut, before));
        split.o.insert(split.o.begin(), before.o.begin(), before.o.end());
        Compare(s, steps, split);
      }
    }
  });
}

// Logits of +-1e3 pick one slot; with every slot masked the output is 0.
TEST(SlotMemory, LargeLogitsAndNoSlots) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    Stream s(random, 3, 2, 21, 8, 10);
    for (float& x : s.q) x *= 300.0f;
    Compare(s, RunSteps(Reference(), s), RunSteps(kernels, s));
    Compare(s, RunChunk(Reference(), s), RunChunk(kernels, s));
    std::fill(s.bias.begin(), s.bias.end(), -HUGE_VALF);
    for (const Result& result : {RunSteps(kernels, s), RunChunk(kernels, s)}) {
      ExpectEqual("o", Floats(s.tokens * s.queries * s.value_dim, 0.0f), result.o);
    }
  });
}

// A memory that forgets e^-80 inside a chunk: the largest factors that a control may hand out, on either side, and a token without
// any slot among others that have some.
TEST(SlotMemory, FactorsAtTheEndOfTheRange) {
  ForEachTable([](const Kernels& kernels) {
    Random random(6);
    for (const float share : {0.0f, 0.5f, 1.0f}) {  // of the 80 that the gain bears; the weight bears the rest
      Stream s(random, 41, 3, 19, 16, 12);
      for (size_t t = 0; t < s.tokens; ++t) {
        const float ahead = 80.0f - 2.0f * static_cast<float>(t);  // log of what is still to be forgotten
        for (size_t j = 0; j < s.slots; ++j) {
          s.carry[t * s.slots + j] = std::exp(ahead - 80.0f);
          s.gain[t * s.slots + j] = std::exp(ahead - (1.0f - share) * 80.0f);
          s.weight[t * s.slots + j] = random.Uniform(0.0f, 0.8f) * std::exp((1.0f - share) * 80.0f - ahead);  // 1 - e^-2 = 0.86
        }
      }
      std::fill(&s.bias[7 * s.slots], &s.bias[8 * s.slots], -HUGE_VALF);
      const Result chunk = RunChunk(kernels, s);
      Compare(s, RunChunk(Reference(), s), chunk);
      Compare(s, RunSteps(kernels, s), chunk);
      const size_t row = s.queries * s.value_dim;
      for (size_t i = 0; i < row; ++i) EXPECT_EQ(chunk.o[7 * row + i], 0.0f);
    }
  });
}

TEST(SlotMemory, ValuesWithFactorsOfTheirOwn) {
  ForEachTable([](const Kernels& kernels) {
    Random random(7);
    for (const size_t slots : Sizes()) {
      const size_t queries = 1 + slots % 4, tokens = 1 + slots % 37;
      Stream s(random, tokens, queries, slots, 1 + (slots * 7) % 40, 1 + (slots * 5) % 40);
      s.AddValueFactors(random);
      for (size_t i = 0; i < s.bias.size(); i += 5) s.bias[i] = -HUGE_VALF;
      const Place place = queries % 2 == 0 ? Place::kEnd : Place::kShifted;
      const Result expected = RunSteps(Reference(), s, place);
      Compare(s, expected, RunSteps(kernels, s, place));
      Compare(s, expected, RunChunk(Reference(), s, place));
      Compare(s, expected, RunChunk(kernels, s, place));
    }
  });
}

// ABC eq. 4-5 as they stand: K~ and V~ built in f64 from all tokens, softmax over slots.
void ExpectDefinition(const Stream& s) {
  const Floats& value_carry = s.own_values() ? s.value_carry : s.carry;
  const Floats& value_gain = s.own_values() ? s.value_gain : s.gain;
  const Floats& value_weight = s.own_values() ? s.value_weight : s.weight;
  for (const Result& result : {RunSteps(Reference(), s), RunChunk(Reference(), s)}) {
    for (size_t t = 0; t < s.tokens; ++t) {
      std::vector<double> p(s.slots), o(s.value_dim, 0.0);
      double total = 0;
      const auto cell = [&](const Floats& carry, const Floats& gain, const Floats& weight, float old, const Floats& rows,
                            size_t dim, size_t e, size_t j) {
        double written = 0;
        for (size_t i = 0; i <= t; ++i) written += static_cast<double>(weight[i * s.slots + j]) * rows[i * dim + e];
        return static_cast<double>(carry[t * s.slots + j]) * old + gain[t * s.slots + j] * written;
      };
      for (size_t j = 0; j < s.slots; ++j) {
        double logit = 0;
        for (size_t x = 0; x < s.key_dim; ++x) {
          logit += cell(s.carry, s.gain, s.weight, s.keys[x * s.slots + j], s.k, s.key_dim, x, j) * s.q[t * s.key_dim + x];
        }
        p[j] = std::exp(static_cast<double>(s.scale) * logit);
        total += p[j];
      }
      for (size_t e = 0; e < s.value_dim; ++e) {
        for (size_t j = 0; j < s.slots; ++j) {
          const float old = s.values[j * s.value_dim + e];
          o[e] += p[j] / total * cell(value_carry, value_gain, value_weight, old, s.v, s.value_dim, e, j);
        }
        EXPECT_NEAR(result.o[t * s.value_dim + e], o[e], 100 * kU) << t << " " << e;
      }
    }
  }
}

TEST(SlotMemory, ReferenceIsTheDefinition) {
  Random random(5);
  Stream s(random, 9, 1, 5, 4, 3);
  ExpectDefinition(s);
  s.AddValueFactors(random);
  ExpectDefinition(s);
}

}  // namespace
}  // namespace tarn::testing
