// The sides of the dense seam: against the reference, with rows that are not finite, and on threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dense/dense.h"
#include "kernels/dense/int4_panels.h"
#include "runtime/core/arith.h"
#include "tests/kernels/kernel_testing.h"
#include "tests/support/threads.h"

namespace tarn::testing {
namespace {

constexpr DenseWeights kTypes[] = {DenseWeights::kF32, DenseWeights::kF16, DenseWeights::kQC8W, DenseWeights::kQB4W};

float FloatOfBf16Bits(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// A layer and rows for it. Weights are not aligned to more than their type.
struct Problem {
  Problem(DenseWeights type, size_t rows_, size_t inputs, size_t outputs, uint32_t seed) : rows(rows_) {
    Random random(seed);
    x = random.Uniform(rows * inputs + kDenseOverread / sizeof(float), -2.0f, 3.0f);
    bias = random.Uniform(outputs, -1.0f, 1.0f);
    scales = random.Uniform(outputs, 0.01f, 0.02f);
    floats = random.Uniform(inputs * outputs, -1.0f, 1.0f);
    halves.resize(floats.size());
    Reference().f32_to_f16(floats.size(), floats.data(), halves.data());
    for (size_t i = 0; i < floats.size(); ++i) bytes.push_back(static_cast<uint8_t>(static_cast<int>(floats[i] * 127.9f)));
    for (size_t i = 0; i < floats.size() / kI4Block; ++i) {
      block_scales.push_back(static_cast<uint16_t>(0x3C00 + static_cast<uint16_t>(random.Uniform(0.0f, 255.9f))));  // 2^-7 .. 2^-5
    }
    spec.inputs = inputs;
    spec.outputs = outputs;
    spec.type = type;
    spec.weight = type == DenseWeights::kF32   ? static_cast<const void*>(floats.data())
                  : type == DenseWeights::kF16 ? static_cast<const void*>(halves.data())
                                               : static_cast<const void*>(bytes.data());
    spec.scales = scales.data();
    spec.block_scales = block_scales.data();
    spec.bias = bias.data();
    spec.x_stride = inputs;
    spec.y_stride = outputs;
    spec.max_rows = rows;
    spec.kernels = SelectKernels(nullptr);
  }

  size_t rows;
  Floats x, bias, scales, floats;
  std::vector<uint16_t> halves, block_scales;
  std::vector<uint8_t> bytes;
  DenseSpec spec{};
};

// Memory that a side asked for, aligned as it may expect.
class Memory {
 public:
  explicit Memory(uint64_t bytes) : bytes_(static_cast<size_t>(bytes)), memory_(bytes_ + kAlignment) {}
  Span<uint8_t> span() {
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory_.data());
    return {memory_.data() + (static_cast<size_t>(AlignUp(at)) - at), bytes_};
  }

 private:
  size_t bytes_;
  std::vector<uint8_t> memory_;
};

Floats RunSide(const DenseBackend& side, const DenseSpec& spec, const Problem& problem, const ThreadPool* threads) {
  Floats y(problem.rows * spec.outputs, std::nanf(""));
  const Result<DenseBytes> bytes = side.measure(spec);
  EXPECT_TRUE(bytes.ok());
  if (!bytes.ok()) return y;
  Memory packed(bytes.value().packed), layer(bytes.value().layer), scratch(bytes.value().scratch);
  EXPECT_TRUE(side.pack(spec, packed.span()).ok());
  const Result<DenseLayer*> made = side.create(spec, packed.span().data(), layer.span());
  EXPECT_TRUE(made.ok());
  if (!made.ok()) return y;
  EXPECT_TRUE(side.run(made.value(), problem.rows, problem.x.data(), y.data(), scratch.span().data(), threads).ok());
  side.destroy(made.value());
  return y;
}

Floats RunReference(const Problem& problem) {
  DenseSpec spec = problem.spec;
  spec.kernels = &Reference();
  return RunSide(PortableDense(), spec, problem, nullptr);
}

// What an output is the sum of: |x| |w|, or with quantized rows scale (|q| + |zero_point|) |s w| for q as i8 or as u8, whichever is
// larger; and the bias.
double SizeOfSum(const Problem& problem, size_t r, size_t o) {
  const DenseSpec& spec = problem.spec;
  const size_t n = spec.inputs;
  const float* x = &problem.x[r * n];
  std::vector<uint8_t> q(n);
  Qdu8 row;
  Reference().quantize_qdu8(n, x, false, q.data(), &row);
  double size = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const size_t at = o * n + i;
    if (spec.type == DenseWeights::kF32 || spec.type == DenseWeights::kF16) {
      size += std::fabs(static_cast<double>(x[i]) * static_cast<double>(problem.floats[at])) * (1.0 + 0x1p-11);
      continue;
    }
    const int unsigned_size = q[i] + row.zero_point, signed_size = std::abs(q[i] - 128) + std::abs(row.zero_point - 128);
    const int nibble = (i % 2 == 0 ? problem.bytes[at / 2] & 15 : problem.bytes[at / 2] >> 4) - 8;
    const double w =
        spec.type == DenseWeights::kQC8W
            ? static_cast<double>(problem.scales[o]) * std::abs(static_cast<int>(static_cast<int8_t>(problem.bytes[at])))
            : static_cast<double>(FloatOfBf16Bits(problem.block_scales[at / kI4Block])) * std::abs(nibble);
    size += static_cast<double>(row.scale) * std::max(unsigned_size, signed_size) * w;
  }
  return size + std::fabs(static_cast<double>(problem.bias[o]));
}

// As many roundings as there are terms in f32 (products; one sum of int8; sums of int4 blocks), twice for the sum of the weights
// that a zero point multiplies, and some for scales and bias.
void ExpectLikeReference(const Problem& problem, const Floats& y) {
  const size_t n = problem.spec.inputs;
  const size_t terms = problem.spec.type == DenseWeights::kQC8W   ? 1
                       : problem.spec.type == DenseWeights::kQB4W ? 2 * n / kI4Block
                                                                  : n;
  ExpectNear("y", RunReference(problem), y, [&](size_t i) {
    return (static_cast<double>(terms) + 8) * kU * SizeOfSum(problem, i / problem.spec.outputs, i % problem.spec.outputs);
  });
}

TEST(DenseSeam, PortableIsLikeTheReference) {
  for (const DenseWeights type : kTypes) {
    for (const size_t rows : {1, 2, 7}) {
      const Problem problem(type, rows, 96, 37, 1);
      ExpectLikeReference(problem, RunSide(PortableDense(), problem.spec, problem, nullptr));
    }
  }
}

// Outputs are split over threads in pieces of some 128 KiB of weights: here four to eleven. The same bits come out.
TEST(DenseSeam, ThreadsChangeNothing) {
  const test::Threads three(3);
  const ThreadPool* threads = three.pool.For(UINT64_MAX);
  for (const DenseWeights type : kTypes) {
    for (const size_t rows : {1, 5}) {
      const Problem problem(type, rows, 1024, type == DenseWeights::kF32 ? 331 : 1031, 2);
      ExpectEqual("y", RunSide(PortableDense(), problem.spec, problem, nullptr),
                  RunSide(PortableDense(), problem.spec, problem, threads));
    }
  }
}

// Calls f with tables of kernels that have, one after the other, all panels that this CPU runs, and the reference's.
template <typename F>
void ForEachPanels(const F& f) {
  ASSERT_FALSE(AllInt4Panels().empty());
  std::vector<const Int4Panels*> all(AllInt4Panels().begin(), AllInt4Panels().end());
  all.push_back(Reference().int4_panels);
  for (const Int4Panels* panels : all) {
    SCOPED_TRACE(panels->name);
    Kernels kernels = *SelectKernels(nullptr);
    kernels.int4_panels = panels;
    f(kernels);
  }
}

// Rows that are multiples of their scale, scales that are powers of two: nothing rounds. So every CPU and both sides must give what
// integers give, to the bit; elsewhere int8 differs by the roundings of ExpectLikeReference alone.
TEST(DenseSeam, Int8IsExactWhereNothingRounds) {
  constexpr size_t kRows = 7, kInputs = 1000, kOutputs = 37;
  Problem problem(DenseWeights::kQC8W, kRows, kInputs, kOutputs, 6);
  Random random(7);
  std::vector<int> q(kRows * kInputs);
  for (size_t i = 0; i < q.size(); ++i) {
    q[i] = i % kInputs == 0 ? -128 : i % kInputs == 1 ? 127 : static_cast<int>(random.Uniform(-128.0f, 127.0f));
    problem.x[i] = static_cast<float>(q[i]) * 0x1p-3f;
  }
  std::fill(problem.scales.begin(), problem.scales.end(), 0x1p-5f);
  for (float& bias : problem.bias) bias = std::nearbyint(bias * 256.0f) * 0x1p-8f;
  Floats expected;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t o = 0; o < kOutputs; ++o) {
      int sum = static_cast<int>(problem.bias[o] * 0x1p8f);
      for (size_t i = 0; i < kInputs; ++i) sum += q[r * kInputs + i] * static_cast<int8_t>(problem.bytes[o * kInputs + i]);
      ASSERT_LT(std::abs(sum), 1 << 24);
      expected.push_back(static_cast<float>(sum) * 0x1p-8f);
    }
  }
  ForEachTable([&](const Kernels& kernels) {
    problem.spec.kernels = &kernels;
    ExpectEqual("y", expected, RunSide(PortableDense(), problem.spec, problem, nullptr));
  });
#if defined(TARN_HAVE_XNNPACK)
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  ExpectEqual("y", expected, RunSide(*xnnpack.value(), problem.spec, problem, nullptr));
#endif
}

// Rows, inputs and outputs that fill tiles and panels, and those that do not.
TEST(DenseSeam, PanelsAreLikeTheReference) {
  ForEachPanels([](const Kernels& kernels) {
    for (const size_t inputs : {32, 96, 1024}) {
      for (const size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 64}) {
        const size_t outputs = rows == 64 ? 37 : 4 * rows + 1 + inputs % 64 / 32 * 30;
        Problem problem(DenseWeights::kQB4W, rows, inputs, outputs, 3);
        problem.spec.kernels = &kernels;
        ExpectLikeReference(problem, RunSide(PanelDense(), problem.spec, problem, nullptr));
        problem.spec.bias = nullptr;
        std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
        ExpectLikeReference(problem, RunSide(PanelDense(), problem.spec, problem, nullptr));
      }
    }
  });
}

// As Int8IsExactWhereNothingRounds, with the largest products that there are in the first two outputs of the first row: nibbles of
// 0 (-8) and of 15 (+7), each with elements of -128 and of +127.
TEST(DenseSeam, Int4IsExactWhereNothingRounds) {
  constexpr size_t kInputs = 160;
  for (size_t outputs = 1; outputs <= 70; outputs += outputs < 34 ? 1 : 12) {
    const size_t rows = 1 + outputs % 9;
    Problem problem(DenseWeights::kQB4W, rows, kInputs, outputs, 8);
    Random random(9);
    std::vector<int> q(rows * kInputs);
    for (size_t i = 0; i < q.size(); ++i) {
      const size_t at = i % kInputs;
      q[i] = at < 64 ? (at % 64 < 32 ? -128 : 127) : static_cast<int>(random.Uniform(-128.0f, 127.0f));
      problem.x[i] = static_cast<float>(q[i]) * 0x1p-3f;
    }
    std::fill(problem.bytes.begin(), problem.bytes.begin() + 32, static_cast<uint8_t>(0x00));
    const auto second = problem.bytes.begin() + kInputs / 2;
    if (outputs > 1) std::fill(second, second + 32, static_cast<uint8_t>(0xFF));
    std::vector<int> scale;  // of a block, in 1/64
    for (uint16_t& bits : problem.block_scales) {
      scale.push_back(1 << static_cast<int>(random.Uniform(0.0f, 3.9f)));
      bits = static_cast<uint16_t>(scale.back() == 1 ? 0x3C80 : scale.back() == 2 ? 0x3D00 : scale.back() == 4 ? 0x3D80 : 0x3E00);
    }
    for (float& bias : problem.bias) bias = std::nearbyint(bias * 256.0f) * 0x1p-8f;
    Floats expected;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t o = 0; o < outputs; ++o) {
        int sum = static_cast<int>(problem.bias[o] * 512.0f);
        for (size_t i = 0; i < kInputs; ++i) {
          const size_t at = o * kInputs + i;
          const int w = (problem.bytes[at / 2] >> (i % 2 * 4) & 15) - 8;
          sum += q[r * kInputs + i] * w * scale[at / kI4Block];
        }
        ASSERT_LT(std::abs(sum), 1 << 24);
        expected.push_back(static_cast<float>(sum) * 0x1p-9f);
      }
    }
    ForEachPanels([&](const Kernels& kernels) {
      problem.spec.kernels = &kernels;
      ExpectEqual("y", expected, RunSide(PanelDense(), problem.spec, problem, nullptr));
    });
  }
}

// Panels end where their memory ends, rows of y and of the scratch where theirs do; rows of y are apart.
TEST(DenseSeam, PanelsTouchNothingElse) {
  ForEachPanels([](const Kernels& kernels) {
    for (const size_t outputs : {1, 8, 15, 17, 33}) {
      Problem problem(DenseWeights::kQB4W, 3, 96, outputs, 10);
      DenseSpec& spec = problem.spec;
      spec.kernels = &kernels;
      spec.y_stride = outputs + 3;
      const Result<DenseBytes> bytes = PanelDense().measure(spec);
      ASSERT_TRUE(bytes.ok());
      Buffer<uint8_t> packed(static_cast<size_t>(bytes.value().packed), Place::kEnd);
      Buffer<uint8_t> scratch(static_cast<size_t>(bytes.value().scratch), Place::kEnd);
      Buffer<float> x(Floats(problem.x.begin(), problem.x.begin() + 3 * 96), Place::kEnd);
      Buffer<float> y(StridedSize(3, outputs, spec.y_stride), Place::kEnd);
      Memory layer(bytes.value().layer);
      ASSERT_TRUE(PanelDense().pack(spec, {packed.data(), packed.size()}).ok());
      const Result<DenseLayer*> made = PanelDense().create(spec, packed.data(), layer.span());
      ASSERT_TRUE(made.ok());
      EXPECT_TRUE(PanelDense().run(made.value(), 3, x.data(), y.data(), scratch.data(), nullptr).ok());
      const Floats actual = Unstrided(y.values(), outputs, spec.y_stride);
      problem.spec.y_stride = outputs;
      ExpectLikeReference(problem, actual);
    }
  });
}

// A row alone and in a batch, on threads and not: the same bits.
TEST(DenseSeam, PanelsOfARowDependOnNothingElse) {
  const test::Threads three(3);
  ForEachPanels([&](const Kernels& kernels) {
    constexpr size_t kRows = 11, kInputs = 1024, kOutputs = 1031;
    Problem problem(DenseWeights::kQB4W, kRows, kInputs, kOutputs, 11);
    problem.spec.kernels = &kernels;
    const Floats all = RunSide(PanelDense(), problem.spec, problem, nullptr);
    ExpectEqual("y", all, RunSide(PanelDense(), problem.spec, problem, three.pool.For(UINT64_MAX)));
    problem.rows = 1;
    for (const size_t row : {0, 3, 10}) {
      std::copy_n(&problem.x[row * kInputs], kInputs, problem.x.begin());
      const Floats expected(all.begin() + static_cast<ptrdiff_t>(row * kOutputs),
                            all.begin() + static_cast<ptrdiff_t>((row + 1) * kOutputs));
      ExpectEqual("y", expected, RunSide(PanelDense(), problem.spec, problem, nullptr));
    }
  });
}

TEST(DenseSeam, PanelsTakeInt4ThatIsNotShared) {
  for (const DenseWeights type : kTypes) {
    Problem problem(type, 1, 32, 4, 4);
    EXPECT_EQ(PanelDense().takes(problem.spec), type == DenseWeights::kQB4W);
    EXPECT_EQ(&DenseFor(PortableDense(), problem.spec), &PortableDense());
    problem.spec.in_place = true;
    EXPECT_FALSE(PanelDense().takes(problem.spec));
    problem.spec.in_place = false;
    problem.spec.kernels = &Reference();
    EXPECT_FALSE(PanelDense().takes(problem.spec));
  }
}

// A row that holds a NaN or an infinity, or whose range is none of f32, makes a row of NaN; its neighbours do not notice.
void ExpectPoisonStays(const DenseBackend& side, Problem& problem) {
  const size_t n = problem.spec.inputs, outputs = problem.spec.outputs;
  const Floats x = problem.x, clean = RunSide(side, problem.spec, problem, nullptr);
  const float nan = std::nanf(""), inf = HUGE_VALF, most = 3e38f;
  const std::vector<std::vector<float>> poisons = {{nan}, {inf}, {-inf}, {nan, inf}, {-nan}, {most, -most}};
  for (const std::vector<float>& poison : poisons) {
    for (const size_t row : {size_t{0}, problem.rows / 2, problem.rows - 1}) {
      for (const size_t at : {size_t{0}, n / 2 + 1, n - poison.size()}) {
        problem.x = x;
        std::copy(poison.begin(), poison.end(), problem.x.begin() + static_cast<ptrdiff_t>(row * n + at));
        const Floats y = RunSide(side, problem.spec, problem, nullptr);
        for (size_t i = 0; i < y.size(); ++i) {
          const bool poisoned = i / outputs == row;
          ASSERT_TRUE(poisoned ? std::isnan(y[i]) : y[i] == clean[i])
              << "output " << i % outputs << " of row " << i / outputs << " is " << y[i] << ", row " << row << " had " << poison[0];
        }
      }
    }
  }
  problem.x = x;
}

TEST(DenseSeam, PoisonStays) {
  for (const DenseWeights type : {DenseWeights::kQC8W, DenseWeights::kQB4W}) {
    for (const size_t rows : {1, 5}) {
      Problem problem(type, rows, 96, 37, 12);
      ForEachTable([&](const Kernels& kernels) {
        problem.spec.kernels = &kernels;
        ExpectPoisonStays(PortableDense(), problem);
#if defined(TARN_HAVE_XNNPACK)
        const Result<const DenseBackend*> xnnpack = XnnpackDense();
        ASSERT_TRUE(xnnpack.ok());
        ExpectPoisonStays(*xnnpack.value(), problem);
#endif
      });
      if (type == DenseWeights::kQB4W) {
        ForEachPanels([&](const Kernels& kernels) {
          problem.spec.kernels = &kernels;
          ExpectPoisonStays(PanelDense(), problem);
        });
      }
    }
  }
}

#if defined(TARN_HAVE_XNNPACK)

// Rows that fill its tiles, and rows that do not.
TEST(DenseSeam, XnnpackIsLikeTheReference) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  for (const DenseWeights type : kTypes) {
    if (type == DenseWeights::kF16) continue;
    for (const size_t inputs : {32, 96, 1024}) {
      for (const size_t rows : {1, 2, 3, 7, 16, 20}) {
        Problem problem(type, rows, inputs, 37, 3);
        ASSERT_TRUE(xnnpack.value()->takes(problem.spec));
        ExpectLikeReference(problem, RunSide(*xnnpack.value(), problem.spec, problem, nullptr));
        problem.spec.bias = nullptr;
        std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
        ExpectLikeReference(problem, RunSide(*xnnpack.value(), problem.spec, problem, nullptr));
      }
    }
  }
}

TEST(DenseSeam, XnnpackLeavesSharedTablesAndHalves) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  for (const DenseWeights type : kTypes) {
    Problem problem(type, 1, 32, 4, 4);
    EXPECT_EQ(xnnpack.value()->takes(problem.spec), type != DenseWeights::kF16);
    problem.spec.in_place = true;
    EXPECT_FALSE(xnnpack.value()->takes(problem.spec));
  }
}

// What the model's validation keeps out comes back as an error all the same.
TEST(DenseSeam, XnnpackRefusesWhatItCannotRun) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  for (const int scale : {0x0000, 0x0001, 0x7F80, 0x7FC0, 0xBF80}) {  // 0, not normal, infinite, NaN, negative
    Problem problem(DenseWeights::kQB4W, 1, 64, 4, 5);
    problem.block_scales[3] = static_cast<uint16_t>(scale);
    EXPECT_FALSE(xnnpack.value()->measure(problem.spec).ok()) << scale;
  }
  Problem problem(DenseWeights::kQB4W, 1, 64, 4, 5);
  problem.spec.inputs = 48;
  EXPECT_FALSE(xnnpack.value()->measure(problem.spec).ok());
}

TEST(DenseSeam, PanelsComeBeforeXnnpack) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  for (const DenseWeights type : kTypes) {
    Problem problem(type, 1, 32, 4, 4);
    const DenseBackend& expected = type == DenseWeights::kF16                         ? PortableDense()
                                   : type == DenseWeights::kQB4W && PanelsComeFirst() ? PanelDense()
                                                                                      : *xnnpack.value();
    EXPECT_EQ(&DenseFor(*xnnpack.value(), problem.spec), &expected);
    problem.spec.in_place = true;
    EXPECT_EQ(&DenseFor(*xnnpack.value(), problem.spec), &PortableDense());
  }
}

#endif

}  // namespace
}  // namespace tarn::testing
