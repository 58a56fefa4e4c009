#include "tools/convert/graph/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/convert/checkpoint/half.h"
#include "tools/convert/checkpoint/random_weights.h"

namespace tarn::convert {
namespace {

// |w - s q| <= s / 2 up to the rounding of f32 in w / s.
void ExpectBound(const std::vector<float>& w) {
  std::vector<int8_t> q(w.size());
  const float scale = QuantizeRow(w.data(), w.size(), q.data());
  ASSERT_GT(scale, 0.0f);
  ASSERT_TRUE(std::isfinite(scale));
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_GE(q[i], -127);
    const double error = std::fabs(static_cast<double>(w[i]) - static_cast<double>(scale) * q[i]);
    EXPECT_LE(error, scale * (0.5 + 127 * 1.2e-7)) << w[i];
  }
}

TEST(Quantize, ErrorIsAtMostHalfAStep) {
  for (const double magnitude : {1e-30, 1e-3, 1.0, 1e30}) {
    std::vector<float> w(1000);
    RandomWeights(7).Read({"w", {1000}, Init::kNormal}, 0, w.size(), w.data());
    for (float& x : w) x *= static_cast<float>(magnitude);
    ExpectBound(w);
  }
}

TEST(Quantize, TheLargestElementIsExact) {
  const std::vector<float> w = {0.5f, -2.0f, 1.0f};
  std::vector<int8_t> q(3);
  EXPECT_EQ(QuantizeRow(w.data(), 3, q.data()), 2.0f / 127.0f);
  EXPECT_EQ(q, (std::vector<int8_t>{32, -127, 64}));
}

TEST(Quantize, RowsWithoutSize) {
  const std::vector<float> zeros(5, 0.0f);
  std::vector<int8_t> q(5, 1);
  EXPECT_EQ(QuantizeRow(zeros.data(), 5, q.data()), 1.0f);
  EXPECT_EQ(q, std::vector<int8_t>(5, 0));
  ExpectBound({std::numeric_limits<float>::denorm_min(), 0});
  ExpectBound({std::numeric_limits<float>::min(), -std::numeric_limits<float>::min() / 2});
  ExpectBound({std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()});
}

// ---- int4 ----

struct Block {
  uint16_t scale;
  std::array<uint8_t, kScaleBlock / 2> packed;

  int q(size_t i) const { return ((packed[i / 2] >> (i % 2 * 4)) & 15) - 8; }
  double value(size_t i) const { return static_cast<double>(FloatOfBf16(scale)) * q(i); }
  double error(const std::vector<float>& w) const {  // sum of squares
    double sum = 0;
    for (size_t i = 0; i < kScaleBlock; ++i) sum += (w[i] - value(i)) * (w[i] - value(i));
    return sum;
  }
};

Block Quantized(const std::vector<float>& w) {
  Block block;
  std::array<int8_t, kScaleBlock> q;
  block.scale = QuantizeBlock(LevelsOf(format::DType::I4), w.data(), q.data());
  PackRow(format::DType::I4, q.data(), kScaleBlock, block.packed.data());
  return block;
}

std::vector<float> Normal(uint64_t seed, double magnitude) {
  std::vector<float> w(kScaleBlock);
  RandomWeights(seed).Read({"w", {kScaleBlock}, Init::kNormal}, 0, w.size(), w.data());
  for (float& x : w) x *= static_cast<float>(magnitude);
  return w;
}

TEST(QuantizeInt4, BytesByHand) {
  // Multiples of 0.25 from -8 to 7 of them, each once: 0.25 is the scale without error.
  std::vector<float> w(kScaleBlock, 0.0f);
  for (int i = 0; i < 16; ++i) w[static_cast<size_t>(i)] = 0.25f * static_cast<float>(i - 8);
  const Block block = Quantized(w);
  EXPECT_EQ(block.scale, 0x3E80);  // 0.25 as bf16
  const std::array<uint8_t, 16> expected = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE,
                                            0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88};
  EXPECT_EQ(block.packed, expected);
}

TEST(QuantizeInt4, AnOddAndAnEvenElement) {
  std::vector<float> w(kScaleBlock, 0.0f);
  w[2] = 7;
  w[3] = -3;
  const Block block = Quantized(w);
  EXPECT_EQ(block.scale, 0x3F80);
  EXPECT_EQ(block.packed[1], 0x5F);
  EXPECT_EQ(block.packed[0], 0x88);
}

TEST(QuantizeInt4, WhatIsOnTheGridStaysThere) {
  for (const uint16_t scale : {uint16_t{0x3F81}, uint16_t{0x3CFF}, uint16_t{0x0100}, uint16_t{0x7D80}}) {
    for (const int end : {7, -8}) {
      std::vector<float> w(kScaleBlock);
      for (int i = 0; i < 32; ++i) w[static_cast<size_t>(i)] = FloatOfBf16(scale) * static_cast<float>(i * 5 % 15 - 7);
      w[9] = FloatOfBf16(scale) * static_cast<float>(end);
      EXPECT_EQ(Quantized(w).error(w), 0) << scale << " " << end;
    }
  }
}

// No worse than any scale at hand, and so than max|w| / 7, with which no element is off by more than half a step.
TEST(QuantizeInt4, TheScaleIsTheBestOfTheGrid) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> w = Normal(seed, 0.05);
    const Block block = Quantized(w);
    float max = 0;
    for (const float x : w) max = std::max(max, std::fabs(x));
    EXPECT_LE(block.error(w), kScaleBlock * std::pow(1.01 * max / 7 / 2, 2)) << seed;
    for (int step = -100; step <= 20; ++step) {
      Block other = block;
      other.scale = static_cast<uint16_t>((BitsOfFloat(max / 7) >> 16) + static_cast<uint32_t>(step));
      const double s = FloatOfBf16(other.scale);
      double error = 0;
      for (const float x : w) error += std::pow(x - s * std::clamp(std::nearbyint(x / s), -8.0, 7.0), 2);
      EXPECT_LE(block.error(w), error * (1 + 1e-5)) << seed << " " << step;
    }
  }
}

TEST(QuantizeInt4, EveryMagnitude) {
  const Block zeros = Quantized(std::vector<float>(kScaleBlock, 0.0f));
  EXPECT_EQ(zeros.scale, 0x3F80);
  for (const uint8_t byte : zeros.packed) EXPECT_EQ(byte, 0x88);
  for (const double magnitude : {1e-45, 1e-41, 1e-38, 1e-30, 1.0, 1e30, 5e37}) {
    const std::vector<float> w = Normal(3, magnitude);
    const Block block = Quantized(w);
    const float scale = FloatOfBf16(block.scale);
    EXPECT_TRUE(std::isnormal(scale) && scale > 0) << magnitude;
    float max = 0;
    for (const float x : w) max = std::max(max, std::fabs(x));
    // Where the smallest normal scale is too coarse, everything is nearer to 0 than half of it.
    const double step = std::max<double>(1.01 * max / 7, std::numeric_limits<float>::min());
    EXPECT_LE(block.error(w), kScaleBlock * step * step / 4) << magnitude;
  }
}

// ---- int3 ----

double ErrorOf(const std::vector<float>& w, double scale) {
  double error = 0;
  for (const float x : w) error += std::pow(x - scale * std::clamp(std::nearbyint(x / scale), -4.0, 3.0), 2);
  return error;
}

// No worse than any scale at hand, of either sign; and the signs are both of use.
TEST(QuantizeInt3, TheScaleIsTheBestOfTheGrid) {
  const Levels levels = LevelsOf(format::DType::I3);
  size_t negative = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> w = Normal(seed, 0.05);
    std::array<int8_t, kScaleBlock> q;
    const double scale = FloatOfBf16(QuantizeBlock(levels, w.data(), q.data()));
    double found = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_TRUE(-4 <= q[i] && q[i] <= 3);
      found += std::pow(w[i] - scale * q[i], 2);
    }
    negative += scale < 0;
    float max = 0;
    for (const float x : w) max = std::max(max, std::fabs(x));
    for (int step = -100; step <= 20; ++step) {
      const double other = FloatOfBf16(static_cast<uint16_t>((BitsOfFloat(max / 3) >> 16) + static_cast<uint32_t>(step)));
      EXPECT_LE(found, ErrorOf(w, other) * (1 + 1e-5)) << seed << " " << step;
      EXPECT_LE(found, ErrorOf(w, -other) * (1 + 1e-5)) << seed << " " << step;
    }
  }
  EXPECT_GT(negative, 10u);
  EXPECT_LT(negative, 40u);
}

TEST(QuantizeInt3, WhatIsOnTheGridStaysThere) {
  for (const float scale : {0.5f, -0.5f}) {
    std::vector<float> w(kScaleBlock);
    for (int i = 0; i < 32; ++i) w[static_cast<size_t>(i)] = scale * static_cast<float>(i % 8 - 4);
    std::array<int8_t, kScaleBlock> q;
    EXPECT_EQ(FloatOfBf16(QuantizeBlock(LevelsOf(format::DType::I3), w.data(), q.data())), scale);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(q[static_cast<size_t>(i)], i % 8 - 4);
  }
}

// ---- int2 ----

double NearestOddError(const std::vector<float>& w, double scale) {
  double error = 0;
  for (const float x : w) {
    double least = std::numeric_limits<double>::infinity();
    for (const int level : {-3, -1, 1, 3}) least = std::min(least, std::pow(x - scale * level, 2));
    error += least;
  }
  return error;
}

TEST(QuantizeInt2, TheScaleIsTheBestOfTheGrid) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> w = Normal(seed, 0.05);
    std::array<int8_t, kScaleBlock> q;
    const double scale = FloatOfBf16(QuantizeBlock(LevelsOf(format::DType::I2), w.data(), q.data()));
    EXPECT_GT(scale, 0);
    double found = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_TRUE(std::abs(q[i]) == 1 || std::abs(q[i]) == 3);
      found += std::pow(w[i] - scale * q[i], 2);
    }
    EXPECT_LE(found, NearestOddError(w, scale) * (1 + 1e-5));
    float max = 0;
    for (const float x : w) max = std::max(max, std::fabs(x));
    for (int step = -100; step <= 20; ++step) {
      const double other = FloatOfBf16(static_cast<uint16_t>((BitsOfFloat(max / 3) >> 16) + static_cast<uint32_t>(step)));
      EXPECT_LE(found, NearestOddError(w, other) * (1 + 1e-5)) << seed << " " << step;
    }
  }
}

// 0 is no level: a block of zeros has the smallest scale there is, so that nothing of it is left in a sum.
TEST(QuantizeInt2, BlocksOfZerosStayZeros) {
  const std::vector<float> zeros(kScaleBlock, 0.0f);
  std::array<int8_t, kScaleBlock> q;
  const float scale = FloatOfBf16(QuantizeBlock(LevelsOf(format::DType::I2), zeros.data(), q.data()));
  EXPECT_EQ(scale, std::numeric_limits<float>::min());
  for (const int8_t level : q) EXPECT_LE(std::abs(level), 1);
}

TEST(PackRow, EveryNumberComesBack) {
  for (const format::DType dtype : {format::DType::I4, format::DType::I3, format::DType::I2}) {
    const Levels levels = LevelsOf(dtype);
    const size_t count = static_cast<size_t>((levels.most - levels.least) / levels.step + 1);
    for (const size_t columns : {32u, 96u, 256u}) {
      std::vector<int8_t> q(columns);
      for (size_t i = 0; i < columns; ++i) {
        q[i] = static_cast<int8_t>(levels.least + levels.step * static_cast<int>(i * 5 % count));
      }
      std::vector<uint8_t> packed(PackedBytes(dtype, columns));
      PackRow(dtype, q.data(), columns, packed.data());
      for (size_t i = 0; i < columns; ++i) EXPECT_EQ(PackedAt(dtype, packed.data(), columns, i), q[i]) << columns << " " << i;
    }
  }
}

// ---- f16 ----

TEST(QuantizeF16, EveryF16IsItself) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7C00) == 0x7C00) continue;
    ASSERT_EQ(F16OfFloat(FloatOfF16(static_cast<uint16_t>(bits))), bits);
  }
}

TEST(QuantizeF16, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = FloatOfF16(static_cast<uint16_t>(bits)), high = FloatOfF16(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(F16OfFloat(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(F16OfFloat(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(F16OfFloat(-std::nextafter(middle, 1e9f)), 0x8000 | (bits + 1));
  }
}

}  // namespace
}  // namespace tarn::convert
