// Kernels that read states as they are stored: the same bits as from floats that were converted before, and a row with a NaN in it
// is read as NaN, on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/denormals.h"
#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr RowType kTypes[] = {RowType::kF32, RowType::kF16, RowType::kI8};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A matrix as a state keeps it, and the floats that a table makes of it.
class Matrix {
 public:
  Matrix(const Kernels& table, RowType type, const Floats& x, size_t rows, Place place = Place::kEnd)
      : type_(type), f32_(x, place), f16_(x.size(), place), i8_(x.size(), place), scales_(rows, place), floats_(x.size(), place) {
    const size_t columns = x.size() / rows;
    for (size_t row = 0; row < rows; ++row) {
      const size_t at = row * columns;
      if (type == RowType::kF32) {
        std::memcpy(floats_.data() + at, f32_.data() + at, columns * sizeof(float));
      } else if (type == RowType::kF16) {
        table.f32_to_f16(columns, f32_.data() + at, f16_.data() + at);
        table.scale_f16(columns, f16_.data() + at, 1.0f, floats_.data() + at);
      } else {
        table.quantize_i8(columns, f32_.data() + at, i8_.data() + at, scales_.data() + row);
        table.scale_i8(columns, i8_.data() + at, scales_.data()[row], floats_.data() + at);
      }
    }
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  const void* data() {
    return type_ == RowType::kF32   ? static_cast<const void*>(f32_.data())
           : type_ == RowType::kF16 ? static_cast<const void*>(f16_.data())
                                    : i8_.data();
  }
  const float* scales() { return type_ == RowType::kI8 ? scales_.data() : nullptr; }
  StoredRows stored() { return {type_, data(), scales()}; }
  const float* floats() { return floats_.data(); }

 private:
  RowType type_;
  Buffer<float> f32_;
  Buffer<uint16_t> f16_;
  Buffer<int8_t> i8_;
  Buffer<float> scales_, floats_;
};

void ExpectSameBits(Buffer<float>& expected, Buffer<float>& actual) {
  EXPECT_EQ(0, std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)));
}

void ExpectAllNan(Buffer<float>& o) {
  for (const float x : o.values()) EXPECT_TRUE(std::isnan(x)) << x;
}

Floats PoisonedRow(Random& random, size_t rows, size_t columns) {
  Floats x = random.Uniform(rows * columns, -1.0f, 1.0f);
  x[rows / 2 * columns] = kNan;  // not the last of its row: what comes behind it must not hide it
  return x;
}

// f(table, type, size, place) for all of them.
template <typename F>
void ForEachCase(const F& f) {
  ForEachTable([&](const Kernels& kernels) {
    for (const RowType type : kTypes) {
      for (const size_t size : Sizes()) f(kernels, type, size, size % 2 == 0 ? Place::kEnd : Place::kShifted);
    }
  });
}

struct LinearCase {
  size_t rows, queries, features, value_dim;

  void Read(const Kernels& kernels, const Floats& phi, const StoredRows& state, Buffer<float>& o) const {
    kernels.linear_read({rows, queries, features, value_dim, phi.data(), state, nullptr, DenMode::kNone, 0.0f, 0.75f, o.data(),
                         queries * value_dim});
  }
};

TEST(Stored, LinearRead) {
  Random random(1);
  ForEachCase([&](const Kernels& kernels, RowType type, size_t size, Place place) {
    const LinearCase c = {1 + size % 9, 1 + size % 3, 1 + size * 3 % 70, size};
    const Floats phi = random.Uniform(c.rows * c.queries * c.features, -0.2f, 1.0f);
    Matrix state(kernels, type, random.Uniform(c.features * c.value_dim, -1.0f, 1.0f), c.features, place);
    const size_t count = c.rows * c.queries * c.value_dim;
    Buffer<float> expected(count, place), actual(count, place);
    c.Read(kernels, phi, state.floats(), expected);
    c.Read(kernels, phi, state.stored(), actual);
    ExpectSameBits(expected, actual);
  });
}

// Of a memory that is read in several blocks of rows and of columns.
TEST(Stored, LinearReadInBlocks) {
  Random random(6);
  ForEachTable([&](const Kernels& kernels) {
    for (const RowType type : kTypes) {
      for (const LinearCase& c : {LinearCase{1, 1, 256, 64}, LinearCase{5, 2, 67, 300}, LinearCase{2, 3, 9, 1030}}) {
        const Floats phi = random.Uniform(c.rows * c.queries * c.features, -0.2f, 1.0f);
        Matrix state(kernels, type, random.Uniform(c.features * c.value_dim, -1.0f, 1.0f), c.features);
        const size_t count = c.rows * c.queries * c.value_dim;
        Buffer<float> expected(count, Place::kEnd), actual(count, Place::kEnd);
        c.Read(kernels, phi, state.floats(), expected);
        c.Read(kernels, phi, state.stored(), actual);
        ExpectSameBits(expected, actual);
      }
    }
  });
}

TEST(Stored, SlotRead) {
  Random random(2);
  ForEachCase([&](const Kernels& kernels, RowType type, size_t size, Place place) {
    const size_t rows = 1 + size % 5, queries = 1 + size % 3, slots = size, d = 1 + size * 3 % 70, dv = 1 + size * 5 % 67;
    const Floats q = random.Uniform(rows * queries * d, -2.0f, 2.0f);
    Matrix keys(kernels, type, random.Uniform(d * slots, -2.0f, 2.0f), d, place);
    Matrix values(kernels, type, random.Uniform(slots * dv, -1.0f, 1.0f), slots, place);
    Buffer<float> expected(rows * queries * dv, place), actual(rows * queries * dv, place);
    Buffer<float> scratch(rows * queries * slots, place);
    const auto read = [&](const StoredRows& k, const StoredRows& v, Buffer<float>& o) {
      kernels.slot_read(
          {rows, queries, slots, d, dv, q.data(), queries * d, k, v, nullptr, 0.3f, o.data(), queries * dv, scratch.data()});
    };
    read(keys.floats(), values.floats(), expected);
    read(keys.stored(), values.stored(), actual);
    ExpectSameBits(expected, actual);
  });
}

struct CacheCase {
  size_t tokens, queries, rows, key_dim, value_dim;

  CacheBlock Block(RowType type, const void* k, const float* k_scales, const void* v, const float* v_scales) const {
    return {rows, type, k, key_dim, v, value_dim, k_scales, v_scales, -kAlways, kAlways, 0};
  }
  void Attend(const Kernels& kernels, const Floats& q, const CacheBlock& block, Buffer<float>& o) const {
    Buffer<float> scratch(CacheScratch(tokens, queries, key_dim, value_dim), Place::kEnd);
    kernels.cache_attend({tokens, queries, key_dim, value_dim, q.data(), queries * key_dim, &block, 1, 0.3f, o.data(),
                          queries * value_dim, scratch.data()});
  }
};

TEST(Stored, CacheAttend) {
  Random random(3);
  ForEachCase([&](const Kernels& kernels, RowType type, size_t size, Place place) {
    for (const size_t tokens : {1, 5}) {
      const CacheCase c = {tokens, 1 + size % 3, 1 + size * 7 % 150, size, 1 + size * 5 % 67};
      const Floats q = random.Uniform(tokens * c.queries * c.key_dim, -2.0f, 2.0f);
      Matrix keys(kernels, type, random.Uniform(c.rows * c.key_dim, -2.0f, 2.0f), c.rows, place);
      Matrix values(kernels, type, random.Uniform(c.rows * c.value_dim, -1.0f, 1.0f), c.rows, place);
      const size_t count = tokens * c.queries * c.value_dim;
      Buffer<float> expected(count, place), actual(count, place);
      c.Attend(kernels, q, c.Block(RowType::kF32, keys.floats(), nullptr, values.floats(), nullptr), expected);
      c.Attend(kernels, q, c.Block(type, keys.data(), keys.scales(), values.data(), values.scales()), actual);
      ExpectSameBits(expected, actual);
    }
  });
}

// A state in f16 that steps update, beside floats that are rounded to f16 after every step.
class HalfState {
 public:
  HalfState(const Kernels& kernels, const Floats& x, Place place) : kernels_(kernels), halves_(x.size(), place), floats_(x, place) {
    Round();
    std::memcpy(halves_.data(), rounded_.data(), rounded_.size() * sizeof(uint16_t));
  }
  StateRows halves() { return {RowType::kF16, halves_.data()}; }
  StateRows floats() { return floats_.data(); }
  void Round() {
    rounded_.resize(floats_.size());
    kernels_.f32_to_f16(floats_.size(), floats_.data(), rounded_.data());
    kernels_.scale_f16(floats_.size(), rounded_.data(), 1.0f, floats_.data());
  }
  void ExpectSame() { EXPECT_EQ(rounded_, halves_.values()); }

 private:
  const Kernels& kernels_;
  Buffer<uint16_t> halves_;
  Buffer<float> floats_;
  std::vector<uint16_t> rounded_;
};

// Features and value_dim such that S is one block, several of rows, and several of columns.
TEST(Stored, LinearStepsOfHalves) {
  Random random(5);
  ForEachTable([&](const Kernels& kernels) {
    for (const bool by_row : {false, true}) {
      for (const auto& shape : {std::pair<size_t, size_t>{3, 1}, {8, 17}, {37, 64}, {129, 33}, {64, 128}, {11, 300}, {1, 520}}) {
        const size_t m = shape.first, dv = shape.second;
        const Place place = dv % 2 == 0 ? Place::kEnd : Place::kShifted;
        const size_t queries = 1 + m % 5;
        const Floats q = random.Uniform(queries * m, -0.2f, 1.0f), k = random.Uniform(m, -0.2f, 1.0f);
        const Floats v = random.Uniform(dv, -1.0f, 1.0f), decay = random.Uniform(m, 0.5f, 1.0f);
        HalfState linear(kernels, random.Uniform(m * dv, -1.0f, 1.0f), place);
        Buffer<float> expected(queries * dv, place), actual(queries * dv, place);
        for (size_t step = 0; step < 3; ++step) {
          const auto run = [&](const StateRows& state, Buffer<float>& o) {
            const LinearStepArgs args = {queries,
                                         m,
                                         dv,
                                         q.data(),
                                         k.data(),
                                         v.data(),
                                         step == 0 ? 1.0f : 0.9f,
                                         by_row ? decay.data() : nullptr,
                                         0.3f,
                                         DenMode::kNone,
                                         0.0f,
                                         0.5f,
                                         state,
                                         nullptr,
                                         o.data()};
            kernels.linear_steps(1, &args);
          };
          run(linear.floats(), expected);
          run(linear.halves(), actual);
          ExpectSameBits(expected, actual);
          linear.Round();
          linear.ExpectSame();
        }
      }
    }
  });
}

TEST(Stored, PoisonedRowsAreReadAsNan) {
  Random random(4);
  ForEachCase([&](const Kernels& kernels, RowType type, size_t size, Place place) {
    const LinearCase linear = {2, 1, 3, size};
    Matrix state(kernels, type, PoisonedRow(random, linear.features, size), linear.features, place);
    Buffer<float> read(2 * size, place);
    linear.Read(kernels, random.Uniform(2 * linear.features, 0.5f, 1.0f), state.stored(), read);
    for (size_t row = 0; row < 2; ++row) {
      for (size_t e = 0; e < size; ++e) {
        // f32 and f16 keep a NaN where it is; an int8 row has one scale.
        EXPECT_EQ(std::isnan(read.data()[row * size + e]), e == 0 || type == RowType::kI8) << e;
      }
    }
    for (const size_t tokens : {1, 5}) {
      const CacheCase cache = {tokens, 1, 40, size, 7};
      Matrix keys(kernels, type, PoisonedRow(random, cache.rows, size), cache.rows, place);
      Matrix values(kernels, type, random.Uniform(cache.rows * 7, -1.0f, 1.0f), cache.rows, place);
      Buffer<float> o(tokens * 7, place);
      cache.Attend(kernels, random.Uniform(tokens * size, 0.5f, 1.0f),
                   cache.Block(type, keys.data(), keys.scales(), values.data(), values.scales()), o);
      ExpectAllNan(o);
    }
  });
}

// ---- What is not a number stays so in these kernels

Floats WithNan(Floats x, size_t at) {
  x[at] = kNan;
  return x;
}

// A logit that is NaN makes its row NaN, whatever stands beside it.
TEST(Poison, Softmax) {
  Random random(7);
  ForEachTable([&](const Kernels& kernels) {
    for (const size_t n : {1, 2, 5, 16, 33, 70}) {
      for (const size_t at : {size_t{0}, n / 2, n - 1}) {
        Buffer<float> p(WithNan(random.Uniform(n, -2.0f, 2.0f), at), Place::kEnd);
        kernels.softmax_rows(1, n, 0.5f, p.data());
        ExpectAllNan(p);
        // A key with a NaN, in a slot of its own.
        const size_t d = 3, dv = 5;
        const Floats q = random.Uniform(d, 0.5f, 1.0f), values = random.Uniform(n * dv, -1.0f, 1.0f);
        const Floats keys = WithNan(random.Uniform(d * n, -1.0f, 1.0f), n + at);
        Buffer<float> o(dv, Place::kEnd), scratch(n, Place::kEnd);
        kernels.slot_read({1, 1, n, d, dv, q.data(), d, keys.data(), values.data(), nullptr, 0.3f, o.data(), dv, scratch.data()});
        ExpectAllNan(o);
        Buffer<float> step_keys(keys, Place::kEnd), step_values(values, Place::kEnd);
        const Floats k = random.Uniform(d, -1.0f, 1.0f), v = random.Uniform(dv, -1.0f, 1.0f), half(n, 0.5f), zero(n, 0.0f);
        kernels.slot_step({1, n, d, dv, q.data(), k.data(), v.data(), half.data(), half.data(), zero.data(), 0.3f, step_keys.data(),
                           step_values.data(), o.data(), scratch.data()});
        ExpectAllNan(o);
      }
    }
  });
}

TEST(Poison, GuardsKeepIt) {
  ForEachTable([&](const Kernels& kernels) {
    for (const size_t n : {1, 3, 16, 37}) {
      const Floats x = WithNan(Floats(n, -1.0f), n - 1);
      Buffer<float> y(n, Place::kEnd);
      kernels.relu(1, n, x.data(), n, y.data(), n);
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y.data()[i]), i == n - 1) << i;
      kernels.features[static_cast<size_t>(FeatureMap::kRelu)](
          {1, n, 0, x.data(), nullptr, nullptr, 1.0f, 0.5f, 0, false, y.data(), nullptr});
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(y.data()[i]), i == n - 1) << i;
    }
    for (const DenMode mode : {DenMode::kAdd, DenMode::kClampMin, DenMode::kAbsClampMin}) {
      const float phi = 1.0f, state = 2.0f;
      Buffer<float> o(1, Place::kEnd);
      kernels.linear_read({1, 1, 1, 1, &phi, &state, &kNan, mode, 0.25f, 1.0f, o.data(), 1});
      ExpectAllNan(o);
    }
  });
}

}  // namespace
}  // namespace tarn::testing
