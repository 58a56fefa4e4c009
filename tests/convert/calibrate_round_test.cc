// Rounding with compensation against plain rounding, and against the best there is where that can be searched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/calibrate/block_scale.h"
#include "tools/convert/calibrate/round.h"
#include "tools/convert/graph/quantize.h"

namespace tarn::convert {
namespace {

using format::DType;

std::vector<float> Normal(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& x : out) {  // a sum of uniform numbers: the same on every machine
    x = -6;
    for (int i = 0; i < 12; ++i) x += static_cast<float>(random()) * 0x1p-32f;
  }
  return out;
}

// Rows of n inputs which mix a few sources with some noise of their own, as those of layers do.
std::vector<float> MixedRows(size_t rows, size_t n, uint32_t seed) {
  constexpr size_t kSources = 6;
  const std::vector<float> mix = Normal(kSources * n, seed), sources = Normal(rows * kSources, seed + 1);
  std::vector<float> x = Normal(rows * n, seed + 2);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; ++i) {
      x[r * n + i] *= 0.2f;
      for (size_t s = 0; s < kSources; ++s) x[r * n + i] += sources[r * kSources + s] * mix[s * n + i];
    }
  }
  return x;
}

SecondMoments MomentsOf(const std::vector<float>& rows, size_t n) {
  SecondMoments moments(n);
  moments.Add(rows.data(), rows.size() / n, n);
  moments.Complete();
  Damp(&moments, 0.01);
  return moments;
}

SecondMoments Identity(size_t n) {
  SecondMoments moments(n);
  Damp(&moments, 0);
  return moments;
}

double CostOf(const Rounding& rounding, const std::vector<float>& weights, const RoundedMatrix& rounded) {
  double cost = 0;
  std::vector<float> error(rounded.columns);
  for (size_t row = 0; row < rounded.rows; ++row) {
    rounded.Read(row, error.data());
    for (size_t i = 0; i < error.size(); ++i) error[i] = weights[row * error.size() + i] - error[i];
    cost += rounding.Cost(error);
  }
  return cost;
}

void ExpectSame(const RoundedMatrix& a, const RoundedMatrix& b) {
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.scales, b.scales);
}

TEST(CalibrateRound, WhereInputsAreIndependentItIsPlainRounding) {
  constexpr size_t kColumns = 96, kRows = 20, kBlocks = kRows * kColumns / kScaleBlock;
  for (const float magnitude : {1.0f, 1e-20f, 1e20f}) {
    std::vector<float> weights = Normal(kRows * kColumns, 1);
    for (float& w : weights) w *= magnitude;
    const SecondMoments identity = Identity(kColumns);
    const Rounding rounding(identity, 1);
    ExpectSame(rounding.Round(weights, DType::I8), RoundAlone(weights, kColumns, DType::I8));
    // Of int4, blocks with the same scale. A few have a better one, which is larger than all that plain rounding tries.
    const RoundedMatrix found = rounding.Round(weights, DType::I4), plain = RoundAlone(weights, kColumns, DType::I4);
    size_t same = 0;
    for (size_t block = 0; block < kBlocks; ++block) {
      if (!std::equal(&found.scales[2 * block], &found.scales[2 * block] + 2, &plain.scales[2 * block])) continue;
      ++same;
      const size_t bytes = kScaleBlock / 2;
      EXPECT_TRUE(std::equal(&found.values[bytes * block], &found.values[bytes * block] + bytes, &plain.values[bytes * block]));
    }
    EXPECT_GE(same, kBlocks * 9 / 10);
    EXPECT_LE(CostOf(rounding, weights, found), CostOf(rounding, weights, plain));
  }
}

TEST(CalibrateRound, CostsLessThanPlainRounding) {
  constexpr size_t kColumns = 128;
  const SecondMoments moments = MomentsOf(MixedRows(600, kColumns, 3), kColumns);
  const Rounding rounding(moments, 2);
  const std::vector<float> weights = Normal(40 * kColumns, 9);
  for (const DType dtype : {DType::I2, DType::I3, DType::I4, DType::I8}) {
    const double plain = CostOf(rounding, weights, RoundAlone(weights, kColumns, dtype));
    const double compensated = CostOf(rounding, weights, rounding.Round(weights, dtype));
    EXPECT_LT(compensated, plain / 4) << static_cast<int>(dtype);
    EXPECT_GT(compensated, 0);
  }
}

// The least cost of a row whose scale is given, over all q within two steps of plain rounding.
double LeastCost(const Rounding& rounding, const std::vector<float>& weights, float scale) {
  const size_t n = weights.size();
  double least = std::numeric_limits<double>::infinity();
  size_t count = 1;
  for (size_t i = 0; i < n; ++i) count *= 5;
  std::vector<float> error(n);
  for (size_t code = 0; code < count; ++code) {
    size_t rest = code;
    for (size_t i = 0; i < n; ++i, rest /= 5) {
      const float q = std::nearbyint(weights[i] / scale) + static_cast<float>(rest % 5) - 2;
      error[i] = weights[i] - scale * std::clamp(q, -127.0f, 127.0f);
    }
    least = std::min(least, rounding.Cost(error));
  }
  return least;
}

TEST(CalibrateRound, IsNearTheBestThereIs) {
  constexpr size_t kColumns = 5;
  double found = 0, least = 0, plain = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const SecondMoments moments = MomentsOf(MixedRows(40, kColumns, 10 * seed), kColumns);
    const Rounding rounding(moments, 1);
    const std::vector<float> weights = Normal(kColumns, seed + 500);
    std::vector<int8_t> q(kColumns);
    const double best = LeastCost(rounding, weights, QuantizeRow(weights.data(), kColumns, q.data()));
    const double cost = CostOf(rounding, weights, rounding.Round(weights, DType::I8));
    EXPECT_GE(cost, best * (1 - 1e-5));  // f32 of the scale
    found += cost;
    least += best;
    plain += CostOf(rounding, weights, RoundAlone(weights, kColumns, DType::I8));
  }
  // Most of what plain rounding loses against the best is won.
  EXPECT_LT(found - least, (plain - least) / 3);
}

TEST(CalibrateRound, TheResultDoesNotDependOnThreads) {
  constexpr size_t kColumns = 64;
  const SecondMoments moments = MomentsOf(MixedRows(200, kColumns, 5), kColumns);
  const std::vector<float> weights = Normal(100 * kColumns, 6);
  uint64_t done = 0;
  ExpectSame(Rounding(moments, 4).Round(weights, DType::I4, [&](uint64_t count) { done += count; }),
             Rounding(moments, 1).Round(weights, DType::I4));
  EXPECT_GE(done, weights.size());
}

TEST(CalibrateRound, ProgressMayStopIt) {
  const SecondMoments identity = Identity(32);
  const auto stop = [](uint64_t) { throw ConvertError("interrupted"); };
  EXPECT_TRUE(FailsWith([&] { Rounding(identity, 2).Round(Normal(32 * 100, 1), DType::I4, stop); }, {"interrupted"}));
}

// ---- moments that leave something open ----

TEST(CalibrateRound, InputsThatAreNeverActiveAreRoundedAlone) {
  constexpr size_t kColumns = 64;
  std::vector<float> rows = MixedRows(300, kColumns, 2);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % kColumns >= 32) rows[i] = 0;
  }
  const SecondMoments moments = MomentsOf(rows, kColumns);
  const std::vector<float> weights = Normal(4 * kColumns, 3);
  const RoundedMatrix rounded = Rounding(moments, 1).Round(weights, DType::I4), plain = RoundAlone(weights, kColumns, DType::I4);
  std::vector<float> a(kColumns), b(kColumns);
  for (size_t row = 0; row < 4; ++row) {
    rounded.Read(row, a.data());
    plain.Read(row, b.data());
    EXPECT_TRUE(std::equal(a.begin() + 32, a.end(), b.begin() + 32)) << row;
  }
}

TEST(CalibrateRound, MomentsWithoutAnInverse) {
  constexpr size_t kColumns = 32;
  const std::vector<float> weights = Normal(3 * kColumns, 4);
  ExpectSame(Rounding(MomentsOf(std::vector<float>(5 * kColumns, 0.0f), kColumns), 1).Round(weights, DType::I4),
             RoundAlone(weights, kColumns, DType::I4));
  const SecondMoments one_row = MomentsOf(Normal(kColumns, 8), kColumns);  // of rank 1
  const Rounding rounding(one_row, 1);
  const RoundedMatrix rounded = rounding.Round(weights, DType::I4);
  EXPECT_LT(CostOf(rounding, weights, rounded), CostOf(rounding, weights, RoundAlone(weights, kColumns, DType::I4)));
}

TEST(CalibrateRound, NumbersThatAreNotFiniteAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, kInfinity}) {
    std::vector<float> numbers = Normal(32, 1);
    numbers[7] = bad;
    EXPECT_TRUE(FailsWith([&] { Rounding(Identity(32), 1).Round(numbers, DType::I4); }, {"expected a finite number"}));
    EXPECT_TRUE(FailsWith([&] { MomentsOf(numbers, 32); }, {"second moments", "expected finite numbers"}));
  }
}

TEST(CalibrateRound, RowsOfZeros) {
  const SecondMoments moments = MomentsOf(MixedRows(100, 32, 1), 32);
  const std::vector<float> zeros(64, 0.0f);
  for (const DType dtype : {DType::I3, DType::I4, DType::I8}) {
    ExpectSame(Rounding(moments, 1).Round(zeros, dtype), RoundAlone(zeros, 32, dtype));
  }
  // int2 has no zero, but the smallest scale.
  const RoundedMatrix rounded = Rounding(moments, 1).Round(zeros, DType::I2);
  std::vector<float> row(32);
  for (size_t i = 0; i < rounded.rows; ++i) {
    rounded.Read(i, row.data());
    for (const float weight : row) EXPECT_LE(std::fabs(weight), 3 * std::numeric_limits<float>::min());
  }
}

// ---- what rounding is made of ----

TEST(CalibrateFactor, ItsSquareIsTheInverse) {
  constexpr size_t kColumns = 150;  // more than two blocks
  const SecondMoments moments = MomentsOf(MixedRows(400, kColumns, 7), kColumns);
  const std::vector<double> u = CompensationFactor(moments);
  for (size_t i = 0; i < kColumns; ++i) {
    for (size_t j = 0; j < i; ++j) ASSERT_EQ(u[i * kColumns + j], 0);
  }
  // U H U^T = I
  for (size_t i = 0; i < kColumns; i += 7) {
    std::vector<double> uh(kColumns);
    for (size_t k = 0; k < kColumns; ++k) {
      for (size_t j = 0; j < kColumns; ++j) uh[j] += u[i * kColumns + k] * moments.sums[k * kColumns + j];
    }
    for (size_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < kColumns; ++k) sum += uh[k] * u[j * kColumns + k];
      ASSERT_NEAR(sum, i == j ? 1 : 0, 1e-9);
    }
  }
}

TEST(CalibrateFactor, MomentsAreSumsOfProducts) {
  constexpr size_t kColumns = 5, kStride = 7, kRows = 37;
  const std::vector<float> x = Normal(kRows * kStride, 1), y = Normal(kRows * kStride, 2);
  SecondMoments moments(kColumns);
  moments.Add(x.data(), 20, kStride);
  moments.Add(&x[20 * kStride], kRows - 20, kStride);
  moments.AddDrift(y.data(), x.data(), kRows, kStride);
  moments.Complete();
  for (size_t i = 0; i < kColumns; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      double sum = 0, drift = 0;
      for (size_t r = 0; r < kRows; ++r) {
        sum += static_cast<double>(x[r * kStride + i]) * x[r * kStride + j];
        drift += (static_cast<double>(y[r * kStride + i]) - x[r * kStride + i]) * x[r * kStride + j];
      }
      EXPECT_NEAR(moments.sums[i * kColumns + j], sum, 1e-4);
      EXPECT_NEAR(moments.drift[i * kColumns + j], drift, 1e-4);
    }
  }
}

// If the inputs were only mixed on their way, the weights can undo it.
TEST(CalibrateFactor, WhatDriftedIsMadeGood) {
  constexpr size_t kColumns = 40, kRows = 500;
  const std::vector<float> y = Normal(kRows * kColumns, 1), mix = Normal(kColumns * kColumns, 2);
  std::vector<float> x = y;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < kColumns; ++i) {
      for (size_t j = 0; j < kColumns; ++j) x[r * kColumns + i] += 0.02f * y[r * kColumns + j] * mix[i * kColumns + j];
    }
  }
  SecondMoments moments(kColumns);
  moments.Add(x.data(), kRows, kColumns);
  moments.AddDrift(y.data(), x.data(), kRows, kColumns);
  moments.Complete();
  Damp(&moments, 1e-7);
  const std::vector<float> weights = Normal(3 * kColumns, 3), good = Rounding(moments, 2).MakeGood(weights);
  for (size_t row = 0; row < 3; ++row) {
    for (size_t r = 0; r < kRows; r += 50) {
      double wanted = 0, found = 0;
      for (size_t i = 0; i < kColumns; ++i) {
        wanted += static_cast<double>(weights[row * kColumns + i]) * y[r * kColumns + i];
        found += static_cast<double>(good[row * kColumns + i]) * x[r * kColumns + i];
      }
      EXPECT_NEAR(found, wanted, 1e-3);
    }
  }
}

// Of a residual that has lost B x, the layer puts B x back.
TEST(CalibrateRound, MakesGoodWhatTheResidualLost) {
  constexpr size_t kColumns = 24, kRows = 400, kWidth = 3;
  const std::vector<float> x = MixedRows(kRows, kColumns, 1), b = Normal(kWidth * kColumns, 5), r = Normal(kRows * kWidth, 6);
  std::vector<float> s = r;
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t o = 0; o < kWidth; ++o) {
      for (size_t i = 0; i < kColumns; ++i) s[row * kWidth + o] += b[o * kColumns + i] * x[row * kColumns + i];
    }
  }
  SecondMoments moments(kColumns);
  moments.Add(x.data(), kRows, kColumns);
  moments.AddDrift(x.data(), x.data(), kRows, kColumns);
  moments.AddResidual(s.data(), r.data(), kWidth, x.data(), kRows, kColumns);
  moments.Complete();
  Damp(&moments, 1e-9);
  const std::vector<float> weights = Normal(kWidth * kColumns, 3), good = Rounding(moments, 2).MakeGood(weights);
  for (size_t i = 0; i < good.size(); ++i) EXPECT_NEAR(good[i], weights[i] + b[i], 1e-3);
}

TEST(CalibrateBlockScale, ScalesAreNormalBf16) {
  EXPECT_EQ(NearestScale(1.0), 1.0f);
  EXPECT_EQ(NearestScale(1.0 + 0x1p-9), 1.0f);  // bf16 has 8 digits
  EXPECT_EQ(NearestScale(1.0 + 0x1.8p-8), 1.0f + 0x1p-7f);
  EXPECT_EQ(NearestScale(0), std::numeric_limits<float>::min());
  EXPECT_EQ(NearestScale(-1), std::numeric_limits<float>::min());
  EXPECT_EQ(NearestScale(1e300), 0x1.FEp127f);
  EXPECT_EQ(Bf16OfScale(1.0f), 0x3F80);
}

}  // namespace
}  // namespace tarn::convert
