// The int8 layer of bare builds against the reference. Integer sums are exact; behind them f32 rounds at most three times, and once
// more for the bias.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/dense/int8_bare.h"
#include "kernels/reference/reference.h"

namespace tarn {
namespace {

TEST(Int8Bare, IsTheReference) {
  uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (const size_t in : {1, 3, 4, 15, 16, 17, 64, 100, 257}) {
    for (const size_t rows : {1, 3}) {
      constexpr size_t kOut = 5;
      std::vector<uint8_t> q(rows * in);
      std::vector<int8_t> weight(kOut * in);
      std::vector<float> scale(kOut), bias(kOut), wanted(rows * kOut), found(rows * kOut);
      std::vector<Qdu8> params(rows);
      for (uint8_t& value : q) value = static_cast<uint8_t>(next());
      for (int8_t& value : weight) value = static_cast<int8_t>(next());
      for (float& value : scale) value = 0.001f + static_cast<float>(next() % 1000) * 1e-5f;
      for (float& value : bias) value = static_cast<float>(next() % 1000) - 500.0f;
      for (Qdu8& row : params) row = {0.01f, static_cast<int32_t>(next() % 256)};
      for (const float* b : {static_cast<const float*>(nullptr), static_cast<const float*>(bias.data())}) {
        reference::DenseQdu8Qc8w(rows, in, kOut, q.data(), params.data(), weight.data(), scale.data(), b, wanted.data(), kOut);
        DenseQdu8Qc8wBare(rows, in, kOut, q.data(), params.data(), weight.data(), scale.data(), b, found.data(), kOut);
        for (size_t i = 0; i < wanted.size(); ++i) {
          const float rounding =
              4 * std::numeric_limits<float>::epsilon() * (std::fabs(wanted[i]) + (b ? 2 * std::fabs(b[i % kOut]) : 0));
          EXPECT_NEAR(found[i], wanted[i], rounding) << in << " inputs, row " << i / kOut << ", output " << i % kOut;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tarn
