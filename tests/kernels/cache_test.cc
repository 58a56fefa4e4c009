// Attention over cached rows: every table against softmax with an explicit mask, in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// A block, with what its rows stand for next to what is stored.
struct Rows {
  size_t rows;
  RowType type;
  size_t key_gap = 0, value_gap = 0;  // elements between rows
  int64_t from, until, step;
  int64_t position = 0;
  Floats keys, values;  // [rows, d], [rows, dv]: exactly what the stored rows mean
  std::vector<uint16_t> key_f16, value_f16;
  std::vector<int8_t> key_i8, value_i8;
  Floats key_scales, value_scales;

  bool Sees(size_t token, size_t row) const {
    const int64_t t = static_cast<int64_t>(token), r = static_cast<int64_t>(row);
    return from + r * step <= t && t < until + r * step;
  }
};

// Normal halves of size up to `range`, which is a power of two.
void MakeF16(Random& random, size_t n, float range, std::vector<uint16_t>& bits, Floats& values) {
  for (size_t i = 0; i < n; ++i) {
    const int top = std::ilogb(range) - 1;
    const int exponent = top - static_cast<int>(random.Uniform(0.0f, 4.0f));
    const int fraction = static_cast<int>(random.Uniform(0.0f, 1023.9f));
    const int sign = random.Uniform(-1.0f, 1.0f) < 0.0f ? 1 : 0;
    bits.push_back(static_cast<uint16_t>((sign << 15) | ((exponent + 15) << 10) | fraction));
    values.push_back((sign != 0 ? -1.0f : 1.0f) * std::ldexp(static_cast<float>(1024 + fraction), exponent - 10));
  }
}

void MakeI8(Random& random, size_t rows, size_t n, float range, std::vector<int8_t>& q, Floats& scales, Floats& values) {
  for (size_t r = 0; r < rows; ++r) {
    scales.push_back(random.Uniform(0.5f, 1.0f) * range / 127.0f);
    for (size_t i = 0; i < n; ++i) {
      q.push_back(static_cast<int8_t>(std::floor(random.Uniform(-127.0f, 127.9f))));
      values.push_back(scales.back() * static_cast<float>(q.back()));
    }
  }
}

struct Case {
  size_t tokens, queries, key_dim, value_dim;
  float scale;
  float soft_cap = 0;
  Floats table, slopes;  // [G, columns], [G]; empty: none
  int64_t behind = 0;
  Floats q;  // [C, G, d]
  std::vector<Rows> blocks;

  Case(Random& random, size_t c, size_t g, size_t d, size_t dv)
      : tokens(c), queries(g), key_dim(d), value_dim(dv), scale(1.0f / std::sqrt(static_cast<float>(d))) {
    q = random.Uniform(c * g * d, -2.0f, 2.0f);
  }

  Rows& Add(Random& random, RowType type, size_t rows, int64_t from, int64_t until, int64_t step) {
    Rows b = {};
    b.rows = rows;
    b.type = type;
    b.from = from;
    b.until = until;
    b.step = step;
    if (type == RowType::kF32) {
      b.keys = random.Uniform(rows * key_dim, -2.0f, 2.0f);
      b.values = random.Uniform(rows * value_dim, -1.0f, 1.0f);
    } else if (type == RowType::kF16) {
      MakeF16(random, rows * key_dim, 2.0f, b.key_f16, b.keys);
      MakeF16(random, rows * value_dim, 1.0f, b.value_f16, b.values);
    } else {
      MakeI8(random, rows, key_dim, 2.0f, b.key_i8, b.key_scales, b.keys);
      MakeI8(random, rows, value_dim, 1.0f, b.value_i8, b.value_scales, b.values);
    }
    blocks.push_back(b);
    return blocks.back();
  }
};

// Rows `stride` apart, with a guard page behind the last; what lies between them is all ones.
template <typename T>
const void* Store(std::list<Buffer<T>>& store, const std::vector<T>& rows, size_t n, size_t stride, Place place) {
  if (rows.empty()) return nullptr;
  const size_t count = rows.size() / n;
  store.emplace_back(StridedSize(count, n, stride), place);
  for (size_t r = 0; r < count; ++r) std::memcpy(store.back().data() + r * stride, &rows[r * n], n * sizeof(T));
  return store.back().data();
}

Floats Attend(const Kernels& table, const Case& c, Place place = Place::kEnd) {
  const size_t q_row = c.queries * c.key_dim, o_row = c.queries * c.value_dim;
  std::list<Buffer<float>> f32;
  std::list<Buffer<uint16_t>> f16;
  std::list<Buffer<int8_t>> i8;
  std::vector<CacheBlock> blocks;
  for (const Rows& b : c.blocks) {
    const size_t k = c.key_dim + b.key_gap, v = c.value_dim + b.value_gap;
    CacheBlock block = {b.rows, b.type, nullptr, k, nullptr, v, nullptr, nullptr, b.from, b.until, b.step, b.position};
    if (b.type == RowType::kF32) {
      block.keys = Store(f32, b.keys, c.key_dim, k, place);
      block.values = Store(f32, b.values, c.value_dim, v, place);
    } else if (b.type == RowType::kF16) {
      block.keys = Store(f16, b.key_f16, c.key_dim, k, place);
      block.values = Store(f16, b.value_f16, c.value_dim, v, place);
    } else {
      block.keys = Store(i8, b.key_i8, c.key_dim, k, place);
      block.values = Store(i8, b.value_i8, c.value_dim, v, place);
      block.key_scales = static_cast<const float*>(Store(f32, b.key_scales, 1, 1, place));
      block.value_scales = static_cast<const float*>(Store(f32, b.value_scales, 1, 1, place));
    }
    blocks.push_back(block);
  }
  Buffer<float> q(Strided(c.q, q_row, q_row + 5), place), o(StridedSize(c.tokens, o_row, o_row + 2), place);
  Buffer<float> scratch(CacheScratch(c.tokens, c.queries, c.key_dim, c.value_dim), place);
  Buffer<float> columns(c.table, place), slopes(c.slopes, place);
  const DistanceBias bias = {c.table.empty() ? nullptr : columns.data(), c.table.size() / c.queries, c.behind,
                             c.slopes.empty() ? nullptr : slopes.data()};
  const bool biased = bias.table != nullptr || bias.slopes != nullptr;
  table.cache_attend({c.tokens, c.queries, c.key_dim, c.value_dim, q.data(), q_row + 5, blocks.data(), blocks.size(), c.scale,
                      o.data(), o_row + 2, scratch.data(), c.soft_cap, biased ? &bias : nullptr});
  return Unstrided(o.values(), o_row, o_row + 2);
}

// What a query head adds for a row `distance` behind its token.
double BiasOf(const Case& c, size_t head, int64_t distance) {
  double bias = 0;
  if (!c.table.empty()) {
    const size_t columns = c.table.size() / c.queries;
    const int64_t last = static_cast<int64_t>(columns) - 1, column = distance + c.behind - 1;
    bias = static_cast<double>(c.table[head * columns + static_cast<size_t>(std::clamp<int64_t>(column, 0, last))]);
  }
  if (!c.slopes.empty()) bias -= static_cast<double>(c.slopes[head]) * static_cast<double>(std::abs(distance));
  return bias;
}

struct Expected {
  Floats o;      // [C, G, dv]
  Floats bound;  // of each element
};

// Softmax over the rows that sees(block, token, row) names. A logit is off by delta = (d + 3) u scale sum|q k|, a probability
// relatively by 2 max delta (numerator and divisor), its exponentials and rescalings 4 per tile, and the sums over rows. That
// bounds the output by the same fraction of sum p|v|.
template <typename F>
Expected Softmax(const Case& c, const F& sees) {
  Expected e;
  for (size_t at = 0; at < c.tokens * c.queries; ++at) {
    std::vector<double> logits;
    std::vector<const float*> values;
    double top = -HUGE_VAL, largest = 0, total = 0, added = 0;
    for (size_t i = 0; i < c.blocks.size(); ++i) {
      const Rows& b = c.blocks[i];
      for (size_t r = 0; r < b.rows; ++r) {
        if (!sees(i, at / c.queries, r)) continue;
        double dot = 0, size = 0;
        for (size_t x = 0; x < c.key_dim; ++x) {
          const double product = static_cast<double>(c.q[at * c.key_dim + x]) * b.keys[r * c.key_dim + x];
          dot += product;
          size += std::fabs(product);
        }
        const double logit = static_cast<double>(c.scale) * dot, cap = c.soft_cap;
        const double bias = BiasOf(c, at % c.queries, b.position + static_cast<int64_t>(r) - static_cast<int64_t>(at / c.queries));
        logits.push_back((cap > 0 ? cap * std::tanh(logit / cap) : logit) + bias);
        added = std::fmax(added, std::fabs(bias) + std::fabs(logits.back()));
        values.push_back(&b.values[r * c.value_dim]);
        top = std::fmax(top, logits.back());
        largest = std::fmax(largest, size);
      }
    }
    for (double& p : logits) total += p = std::exp(p - top);
    const double rows = static_cast<double>(logits.size()), blocks = static_cast<double>(c.blocks.size());
    // A cap makes differences no larger; tanh, quotient and product: 12 u of it. Slope times distance, and two sums: 3 u of what is
    // added and of the logit.
    const double delta = (static_cast<double>(c.key_dim) + 3) * kU * static_cast<double>(c.scale) * largest +
                         12 * kU * static_cast<double>(c.soft_cap) + (c.table.empty() && c.slopes.empty() ? 0 : 3 * kU * added);
    const double u = 2 * delta + (2 * rows + 4 * (rows / 64 + 2 * blocks) + 8) * kU;
    for (size_t x = 0; x < c.value_dim; ++x) {
      double sum = 0, size = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        sum += logits[i] / total * static_cast<double>(values[i][x]);
        size += logits[i] / total * std::fabs(static_cast<double>(values[i][x]));
      }
      e.o.push_back(static_cast<float>(sum));
      e.bound.push_back(static_cast<float>(u * size));
    }
  }
  return e;
}

Expected Softmax(const Case& c) {
  return Softmax(c, [&](size_t block, size_t token, size_t row) { return c.blocks[block].Sees(token, row); });
}

void CheckEveryTable(const Case& c, const Expected& e, Place place = Place::kEnd) {
  ForEachTable([&](const Kernels& kernels) {
    ExpectNear("o", e.o, Attend(kernels, c, place), [&](size_t i) { return static_cast<double>(e.bound[i]); });
  });
}

// Rows of all ones where the block's type has a NaN, which nobody sees or only some see.
void Poison(const Case& c, Rows& b, size_t row) {
  for (size_t x = 0; x < c.key_dim; ++x) b.keys[row * c.key_dim + x] = std::nanf("");
  for (size_t x = 0; x < c.value_dim; ++x) b.values[row * c.value_dim + x] = std::nanf("");
  if (b.type == RowType::kF16) {
    for (size_t x = 0; x < c.key_dim; ++x) b.key_f16[row * c.key_dim + x] = 0xFFFF;
    for (size_t x = 0; x < c.value_dim; ++x) b.value_f16[row * c.value_dim + x] = 0xFFFF;
  } else if (b.type == RowType::kI8) {
    b.key_scales[row] = b.value_scales[row] = std::nanf("");
  }
}

size_t Below(Random& random, size_t n) { return static_cast<size_t>(random.Uniform(0.0f, static_cast<float>(n) - 0.01f)); }

// Blocks of all kinds: seen by all, by none, from a token on, up to a token, as a band; steps from -2 to 5.
void AddRandomBlock(Case& c, Random& random) {
  constexpr RowType kTypes[] = {RowType::kF32, RowType::kF16, RowType::kI8};
  const size_t rows = Below(random, 150);
  const int64_t step = static_cast<int64_t>(Below(random, 8)) - 2;
  // Rows around the chunk's tokens, whatever the step.
  const int64_t reach = static_cast<int64_t>(c.tokens) + step * static_cast<int64_t>(rows);
  const int64_t from = static_cast<int64_t>(Below(random, c.tokens + 1)) -
                       static_cast<int64_t>(random.Uniform(0.0f, 1.0f) * static_cast<float>(reach));
  const int64_t length = static_cast<int64_t>(Below(random, 2 * c.tokens + 2));
  const size_t kind = Below(random, 5);
  int64_t begin = from, end = from + length;
  if (kind == 0) begin = -kAlways, end = kAlways;
  if (kind == 1) begin = -kAlways;
  if (kind == 2) end = kAlways;
  Rows& b = c.Add(random, kTypes[Below(random, 3)], rows, begin, end, step);
  b.key_gap = Below(random, 4);
  b.value_gap = Below(random, 4);
  for (size_t r = 0; r < rows; ++r) {
    bool seen = false;
    for (size_t t = 0; t < c.tokens && !seen; ++t) seen = b.Sees(t, r);
    if (!seen) Poison(c, b, r);
  }
}

TEST(Cache, RandomBlocks) {
  Random random(1);
  for (const size_t tokens : {1, 2, 7, 64}) {
    for (size_t trial = 0; trial < 40; ++trial) {
      SCOPED_TRACE(::testing::Message() << tokens << " tokens, trial " << trial);
      const size_t queries[] = {1, 2, 3, 8};
      Case c(random, tokens, queries[trial % 4], 1 + Below(random, 40), 1 + Below(random, 40));
      if (trial % 3 == 0) c.soft_cap = trial % 2 == 0 ? 0.5f : 30.0f;
      const size_t blocks = Below(random, 6);
      for (size_t i = 0; i < blocks; ++i) AddRandomBlock(c, random);
      CheckEveryTable(c, Softmax(c), trial % 2 == 0 ? Place::kEnd : Place::kShifted);
    }
  }
}

// All tails of both row lengths, for one block that everybody sees.
TEST(Cache, StepOfEverySize) {
  Random random(2);
  for (const size_t size : Sizes()) {
    for (const size_t queries : {1, 2, 3, 8, 11}) {
      for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kI8}) {
        Case c(random, 1, queries, size, 1 + (size * 3) % 40);
        c.Add(random, type, 1 + (size * 13 + queries * 41) % 200, -kAlways, kAlways, 0);
        CheckEveryTable(c, Softmax(c), queries % 2 == 0 ? Place::kEnd : Place::kShifted);
      }
    }
  }
}

// Tables that are longer and shorter than the rows are far, with and without columns for rows behind a token, and slopes.
TEST(Cache, BiasByDistance) {
  Random random(10);
  for (const size_t tokens : {1, 2, 7, 40}) {
    for (size_t trial = 0; trial < 24; ++trial) {
      SCOPED_TRACE(::testing::Message() << tokens << " tokens, trial " << trial);
      const size_t queries = 1 + trial % 3, past = trial * 7;
      Case c(random, tokens, queries, 5, 6);
      if (trial % 5 == 0) c.soft_cap = 2.0f;
      if (trial % 4 != 1) {
        constexpr size_t kBehind[] = {1, 3, 20, 300}, kAhead[] = {0, 2, 90};
        c.behind = static_cast<int64_t>(kBehind[trial / 2 % 4]);
        c.table = random.Uniform(queries * (kBehind[trial / 2 % 4] + kAhead[trial % 3]), -3.0f, 3.0f);
      }
      if (trial % 4 != 0) c.slopes = random.Uniform(queries, 0.0f, 0.5f);
      c.Add(random, RowType::kF32, past, -kAlways, kAlways, 0).position = -static_cast<int64_t>(past);
      if (trial % 2 == 0) {
        c.Add(random, RowType::kF16, tokens, 0, kAlways, 1);
      } else {  // every token sees all
        c.Add(random, RowType::kF32, tokens + 30, -kAlways, kAlways, 0).position = 0;
      }
      CheckEveryTable(c, Softmax(c), trial % 3 == 0 ? Place::kEnd : Place::kShifted);
    }
  }
}

// A past that everybody sees, and the chunk's own rows.
TEST(Cache, ChunkOfEverySize) {
  Random random(3);
  for (size_t tokens = 2; tokens <= 35; ++tokens) {
    for (const size_t past : {0, 1, 63, 64, 90}) {
      Case c(random, tokens, 1 + tokens % 3, 1 + (tokens * 7) % 40, 1 + (tokens * 5) % 40);
      if (past == 90) c.soft_cap = 1.0f;
      c.Add(random, RowType::kF32, past, -kAlways, kAlways, 0);
      c.Add(random, RowType::kF32, tokens, 0, kAlways, 1);
      CheckEveryTable(c, Softmax(c), past % 2 == 0 ? Place::kEnd : Place::kShifted);
    }
  }
}

// Row by row as the cache grows, and all at once.
TEST(Cache, ChunkEqualsSteps) {
  Random random(4);
  constexpr size_t kPast = 70, kTokens = 64;
  Case c(random, kTokens, 2, 64, 64);
  c.Add(random, RowType::kF32, kPast + kTokens, -static_cast<int64_t>(kPast), kAlways, 1);
  const Expected e = Softmax(c);
  ForEachTable([&](const Kernels& kernels) {
    Floats steps;
    for (size_t t = 0; t < kTokens; ++t) {
      Case one = c;
      one.tokens = 1;
      const size_t row = c.queries * c.key_dim;
      one.q.assign(c.q.begin() + static_cast<ptrdiff_t>(t * row), c.q.begin() + static_cast<ptrdiff_t>((t + 1) * row));
      one.blocks[0].from -= static_cast<int64_t>(t);
      for (const float value : Attend(kernels, one)) steps.push_back(value);
    }
    ExpectNear("o", steps, Attend(kernels, c), [&](size_t i) { return 2 * static_cast<double>(e.bound[i]); });
  });
}

// A window of w tokens over a ring of w rows (token p in row p mod w) that holds the tokens before the chunk: in memory its older
// rows follow its newer ones, so it is two blocks. The mask is written by positions.
TEST(Cache, RingInTwoPieces) {
  Random random(5);
  for (const size_t tokens : {1, 2, 7, 64}) {
    for (const size_t window : {1, 5, 64, 150}) {
      const size_t seen = 3 * window + window / 3;  // tokens before the chunk
      const size_t newest = (seen - 1) % window;    // rows 0..newest are the newest tokens
      Case c(random, tokens, 2, 16, 16);
      const int64_t w = static_cast<int64_t>(window), split = static_cast<int64_t>(newest + 1);
      // The token of row r of the second piece is seen - w + r; it leaves when token p + w comes, which is t = r of the chunk.
      c.Add(random, RowType::kF16, newest + 1, -kAlways, w - split, 1);
      c.Add(random, RowType::kF16, window - newest - 1, -kAlways, 0, 1);
      c.Add(random, RowType::kF32, tokens, 0, w, 1);
      CheckEveryTable(
          c, Softmax(c, [&](size_t block, size_t token, size_t row) {
            const size_t now = seen + token;
            const size_t position = block == 2 ? seen + row : block == 1 ? seen - window + row : seen - newest - 1 + row;
            return position <= now && position + window > now;
          }));
    }
  }
}

// Every 4th token, from itself on, of which the last five count: row r is the token at 4r + 3.
TEST(Cache, StridedRows) {
  Random random(6);
  for (const size_t tokens : {2, 7, 64}) {
    Case c(random, tokens, 3, 8, 8);
    const size_t rows = (tokens + 40) / 4;  // the first token of the chunk is token 40
    for (const RowType type : {RowType::kF32, RowType::kI8}) c.Add(random, type, rows, 3 - 40, 3 - 40 + 5 * 4, 4);
    CheckEveryTable(c, Softmax(c, [&](size_t, size_t token, size_t row) {
                      const size_t now = 40 + token, position = 4 * row + 3;
                      return position <= now && position + 20 > now;
                    }));
  }
}

TEST(Cache, NothingVisibleIsZero) {
  Random random(7);
  for (const size_t tokens : {1, 2, 64}) {
    Case c(random, tokens, 2, 12, 20);
    const Floats zeros(tokens * 2 * 20, 0.0f);
    ForEachTable([&](const Kernels& kernels) { ExpectEqual("no block", zeros, Attend(kernels, c)); });
    c.Add(random, RowType::kF32, 0, -kAlways, kAlways, 0);
    c.Add(random, RowType::kF16, 70, kAlways, kAlways, 0);
    c.Add(random, RowType::kI8, 70, static_cast<int64_t>(tokens), kAlways, 1);
    c.Add(random, RowType::kF32, 70, -kAlways, 0, 0);
    c.Add(random, RowType::kF32, 70, 5, 5, 0);
    for (Rows& b : c.blocks) {
      for (size_t r = 0; r < b.rows; ++r) Poison(c, b, r);
    }
    ForEachTable([&](const Kernels& kernels) { ExpectEqual("no visible row", zeros, Attend(kernels, c)); });
  }
}

// A row of NaN does nothing to the tokens that do not see it, next to others that do.
TEST(Cache, NanReachesOnlyWhoSeesIt) {
  Random random(8);
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kI8}) {
    for (const size_t bad : {0, 5, 39}) {
      Case c(random, 40, 2, 20, 24);
      c.Add(random, RowType::kF32, 30, -kAlways, kAlways, 0);
      Rows& own = c.Add(random, type, 40, 0, 9, 1);
      const Expected e = Softmax(c);
      Poison(c, own, bad);
      ForEachTable([&](const Kernels& kernels) {
        Floats o = Attend(kernels, c);
        const size_t row = c.queries * c.value_dim;
        for (size_t i = 0; i < o.size(); ++i) {
          if (own.Sees(i / row, bad)) o[i] = e.o[i];
        }
        ExpectNear("o", e.o, o, [&](size_t i) { return static_cast<double>(e.bound[i]); });
      });
    }
  }
}

// Logits of +-1e3, rising and falling along the rows: the maximum moves in every tile, or never.
TEST(Cache, LargeLogits) {
  Random random(9);
  for (const float slope : {20.0f, -20.0f}) {
    for (const size_t tokens : {1, 9}) {
      Case c(random, tokens, 2, 4, 3);
      for (size_t i = 0; i < c.q.size(); ++i) c.q[i] = i % 4 == 0 ? 1.0f : 0.0f;
      for (const size_t first : {0, 70}) {
        Rows& b = c.Add(random, RowType::kF32, 75, -kAlways, kAlways, 0);
        for (size_t r = 0; r < b.rows; ++r) b.keys[r * 4] = slope * (static_cast<float>(first + r) - 75.0f);
      }
      CheckEveryTable(c, Softmax(c));
    }
  }
}

}  // namespace
}  // namespace tarn::testing
