// Rows as states and rings store them: f16 and int8, every table bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/denormals.h"
#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr uint16_t kLargestF16 = 0x7BFF;  // 65504

std::vector<uint16_t> ToF16(const Kernels& table, const Floats& x, Place place = Place::kEnd) {
  Buffer<float> in(x, place);
  Buffer<uint16_t> out(x.size(), place);
  table.f32_to_f16(x.size(), in.data(), out.data());
  return out.values();
}

// The f32 value of every finite f16 >= 0, in order.
Floats EveryF16() {
  std::vector<uint16_t> bits(kLargestF16 + 1);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  Floats values(bits.size());
  Reference().scale_f16(bits.size(), bits.data(), 1.0f, values.data());
  return values;
}

Floats Negative(Floats x) {
  for (float& value : x) value = -value;
  return x;
}

// Every f16 comes back; half way between two of them the even one wins, and next to that the nearer one. Midpoints have 12 bits:
// f32 holds them.
TEST(Storage, F16RoundsToNearestEven) {
  const Floats values = EveryF16();
  Floats x = values;
  std::vector<uint16_t> expected(values.size());
  for (size_t i = 0; i < values.size(); ++i) expected[i] = static_cast<uint16_t>(i);
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = 0.5f * (values[i] + values[i + 1]);
    x.insert(x.end(), {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, HUGE_VALF)});
    const size_t even = i % 2 == 0 ? i : i + 1;
    for (const size_t bits : {i, even, i + 1}) expected.push_back(static_cast<uint16_t>(bits));
  }
  for (const float beyond : {65504.01f, 65519.0f, 65520.0f, 1e9f, 3e38f, HUGE_VALF}) {
    x.push_back(beyond);
    expected.push_back(kLargestF16);
  }
  std::vector<uint16_t> negative = expected;
  for (uint16_t& bits : negative) bits = static_cast<uint16_t>(bits | 0x8000);
  ForEachTable([&](const Kernels& kernels) {
    EXPECT_EQ(ToF16(kernels, x), expected);
    EXPECT_EQ(ToF16(kernels, Negative(x)), negative);
    const uint16_t nan = ToF16(kernels, {std::nanf("")})[0];
    EXPECT_GT(nan & 0x7FFF, 0x7C00);
  });
}

TEST(Storage, F16OfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(1);
    for (const size_t n : Sizes()) {
      for (const Place place : {Place::kEnd, Place::kShifted}) {
        Floats x = random.Uniform(n, -1.0f, 1.0f);
        for (size_t i = 0; i < n; ++i) x[i] = std::ldexp(x[i], static_cast<int>(i * 7 % 60) - 40);
        EXPECT_EQ(ToF16(Reference(), x, place), ToF16(kernels, x, place)) << n;
      }
    }
  });
}

constexpr uint32_t kNanBits[] = {0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7F802000, 0x7FA00000, 0xFFC00000, 0xFF800001, 0xFFFFFFFF};

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Whatever its payload, and wherever in a vector it stands.
TEST(Storage, F16KeepsNan) {
  ForEachTable([](const Kernels& kernels) {
    for (const size_t n : Sizes()) {
      for (const uint32_t bits : kNanBits) {
        Floats x(n, 1.0f);
        x[n / 2] = FromBits(bits);
        const std::vector<uint16_t> f16 = ToF16(kernels, x);
        for (size_t i = 0; i < n; ++i) EXPECT_EQ((f16[i] & 0x7FFF) > 0x7C00, i == n / 2) << i << " of " << n;
      }
    }
  });
}

// Every f16, with and without denormals: those of f16 are none of f32.
TEST(Storage, F16IsReadExactly) {
  std::vector<uint16_t> bits(1u << 16);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  Floats expected(bits.size());
  Reference().scale_f16(bits.size(), bits.data(), 1.0f, expected.data());
  ForEachTable([&](const Kernels& kernels) {
    for (const bool flush : {false, true}) {
      Floats actual(bits.size());
      if (flush) {
        const FlushDenormals scope;
        kernels.scale_f16(bits.size(), bits.data(), 1.0f, actual.data());
      } else {
        kernels.scale_f16(bits.size(), bits.data(), 1.0f, actual.data());
      }
      for (size_t i = 0; i < bits.size(); ++i) {
        const bool is_nan = (bits[i] & 0x7FFF) > 0x7C00;
        ASSERT_EQ(std::isnan(expected[i]), is_nan) << i;
        ASSERT_EQ(std::isnan(actual[i]), is_nan) << i;
        if (is_nan) continue;
        ASSERT_EQ(std::memcmp(&expected[i], &actual[i], sizeof(float)), 0) << i << ": " << actual[i];
      }
    }
  });
}

struct I8 {
  std::vector<int8_t> q;
  float scale;
};

I8 ToI8(const Kernels& table, const Floats& x, Place place = Place::kEnd) {
  Buffer<float> in(x, place), scale(1, place);
  Buffer<int8_t> q(x.size(), place);
  table.quantize_i8(x.size(), in.data(), q.data(), scale.data());
  return {q.values(), scale.data()[0]};
}

// The same bits in every table, because a value half way between two integers would differ by a whole step. x/scale is rounded a
// few times, and then to the nearest integer.
TEST(Storage, I8OfEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const size_t n : Sizes()) {
      for (const Place place : {Place::kEnd, Place::kShifted}) {
        for (const float range : {1e-30f, 1.0f, 1e30f}) {
          const Floats x = random.Uniform(n, -range, range);
          const I8 expected = ToI8(Reference(), x, place), actual = ToI8(kernels, x, place);
          EXPECT_EQ(expected.q, actual.q) << n;
          EXPECT_EQ(expected.scale, actual.scale) << n;
          double largest = 0;
          for (size_t i = 0; i < n; ++i) largest = std::fmax(largest, std::fabs(static_cast<double>(x[i])));
          EXPECT_NEAR(actual.scale, largest / 127, kU * largest / 127);
          for (size_t i = 0; i < n; ++i) {
            EXPECT_NEAR(x[i], static_cast<double>(actual.scale) * actual.q[i],
                        (0.5 + 127 * 4 * kU) * static_cast<double>(actual.scale));
          }
        }
      }
    }
  });
}

// Ends, ties to even, zeros, and a row too small to have an inverse.
TEST(Storage, I8ByHand) {
  ForEachTable([](const Kernels& kernels) {
    const I8 row = ToI8(kernels, {-127.0f, 0.5f, 1.5f, -2.5f, 63.49f, 127.0f, -0.0f});
    EXPECT_EQ(row.scale, 1.0f);
    EXPECT_EQ(row.q, (std::vector<int8_t>{-127, 0, 2, -2, 63, 127, 0}));
    for (const float size : {0.0f, 1e-40f, 3e-37f}) {
      const I8 zeros = ToI8(kernels, Floats(19, size));
      EXPECT_EQ(zeros.scale, 0.0f);
      EXPECT_EQ(zeros.q, std::vector<int8_t>(19, 0));
    }
  });
}

// A row that is not finite: zeros, and a scale that makes NaN of each. Wherever it stands, with larger and smaller elements behind
// it.
TEST(Storage, I8MarksRowsThatAreNotFinite) {
  ForEachTable([](const Kernels& kernels) {
    Random random(3);
    for (const size_t n : Sizes()) {
      for (const size_t at : {size_t{0}, n / 2, n - 1}) {
        for (const float bad : {FromBits(0x7FC00000), FromBits(0x7F800001), FromBits(0xFFFFFFFF), HUGE_VALF, -HUGE_VALF}) {
          Floats x = random.Uniform(n, -3.0f, 3.0f);
          x[at] = bad;
          const I8 row = ToI8(kernels, x);
          EXPECT_TRUE(std::isnan(row.scale)) << row.scale << ", " << at << " of " << n;
          EXPECT_EQ(row.q, std::vector<int8_t>(n, 0));
        }
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
