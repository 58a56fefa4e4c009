// Rows of int8 activations against those of XNNPACK's own operator, bit for bit: its multiplications are given ours.
#if defined(TARN_HAVE_XNNPACK)

#include <gtest/gtest.h>
#include <xnnpack.h>

#include <algorithm>
#include <cmath>

#include "kernels/dense/dense.h"
#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// A row with a range of its own: anywhere around zero, or on one side of it.
Floats RandomRow(size_t n, Random& random) {
  const float size = std::exp2(random.Uniform(-90.0f, 90.0f));
  const float from = random.Uniform(-1.0f, 0.5f), to = from + random.Uniform(0.0f, 1.5f);
  Floats x = random.Uniform(n, from, to);
  for (float& value : x) value *= size;
  return x;
}

class XnnpackQuantize : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(XnnpackDense().ok());
    ASSERT_EQ(xnn_create_convert_nc_f32_qd8(/*flags=*/0, &op_), xnn_status_success);
  }
  void TearDown() override { xnn_delete_operator(op_); }

  // x: n elements and kDenseOverread bytes behind them.
  void ExpectSame(const Kernels& kernels, size_t n, const Floats& x) {
    std::vector<int8_t> expected(n + XNN_EXTRA_BYTES), actual(n);
    std::vector<xnn_quantization_params> params(1 + XNN_EXTRA_QUANTIZATION_PARAMS);
    ASSERT_EQ(xnn_reshape_convert_nc_f32_qd8(op_, 1, n, n, n, nullptr), xnn_status_success);
    ASSERT_EQ(xnn_setup_convert_nc_f32_qd8(op_, x.data(), expected.data(), params.data()), xnn_status_success);
    ASSERT_EQ(xnn_run_operator(op_, nullptr), xnn_status_success);
    expected.resize(n);
    Qdu8 row;
    kernels.quantize_qd8(n, x.data(), actual.data(), &row);
    ASSERT_EQ(params[0].scale, row.scale);
    ASSERT_EQ(params[0].zero_point, row.zero_point - 128);
    ASSERT_EQ(expected, actual) << "scale " << row.scale;
  }

 private:
  xnn_operator_t op_ = nullptr;
};

TEST_F(XnnpackQuantize, RandomRows) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(1);
    for (int i = 0; i < 4000 && !HasFailure(); ++i) {
      const size_t n = 1 + static_cast<size_t>(random.Uniform(0.0f, 299.9f));
      Floats x = RandomRow(n, random);
      x.resize(n + kDenseOverread / sizeof(float));
      ExpectSame(kernels, n, x);
    }
  });
}

// Elements in the middle between two steps, and next to it: a last bit of the factor that they are multiplied by is a step there.
TEST_F(XnnpackQuantize, ElementsBetweenTwoSteps) {
  ForEachTable([&](const Kernels& kernels) {
    Random random(2);
    for (int i = 0; i < 400 && !HasFailure(); ++i) {
      const float low = random.Uniform(-4.0f, 0.0f), high = random.Uniform(0.1f, 4.0f), step = (high - low) / 255.0f;
      Floats x = {low, high};
      for (float middle = std::ceil(low / step) + 0.5f; middle * step < high; middle += 1.0f) {
        const float value = middle * step;
        for (const float near : {std::nextafter(value, low), value, std::nextafter(value, high)}) {
          if (near >= low && near <= high) x.push_back(near);
        }
      }
      const size_t n = x.size();
      x.resize(n + kDenseOverread / sizeof(float));
      ExpectSame(kernels, n, x);
    }
  });
}

}  // namespace
}  // namespace tarn::testing

#endif  // TARN_HAVE_XNNPACK
