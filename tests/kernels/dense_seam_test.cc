// Both sides of the dense seam: against the reference, with rows that are not finite, and the portable one on threads.
#include <gtest/gtest.h>
#if defined(TARN_HAVE_XNNPACK)
#include <cpuinfo.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/arith.h"
#include "kernels/dense/dense.h"
#include "kernels/dense/xnnpack_rows.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/kernel_testing.h"
#include "tests/support/threads.h"

namespace tarn::testing {
namespace {

constexpr DenseWeights kTypes[] = {DenseWeights::kF32,  DenseWeights::kF16,  DenseWeights::kQC8W,
                                   DenseWeights::kQB4W, DenseWeights::kQB3W, DenseWeights::kQB2W};

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
    for (size_t i = 0; i < floats.size() / kScaleBlock; ++i) {
      block_scales.push_back(static_cast<uint16_t>(0x3C00 + static_cast<uint16_t>(random.Uniform(0.0f, 255.9f))));  // 2^-7 .. 2^-5
    }
    for (size_t i = 0; type == DenseWeights::kQB3W && i < block_scales.size(); i += 3) block_scales[i] ^= 0x8000;  // negative
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
  Reference().quantize_qdu8(n, x, 1, q.data(), &row);
  double size = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const size_t at = o * n + i;
    if (spec.type == DenseWeights::kF32 || spec.type == DenseWeights::kF16) {
      size += std::fabs(static_cast<double>(x[i]) * static_cast<double>(problem.floats[at])) * (1.0 + 0x1p-11);
      continue;
    }
    const int unsigned_size = q[i] + row.zero_point, signed_size = std::abs(q[i] - 128) + std::abs(row.zero_point - 128);
    const unsigned bits = spec.type == DenseWeights::kQB4W ? 4 : PlaneBits(spec.type);
    const int number = reference::BlockWeightAt(bits, &problem.bytes[o * (n / 8 * bits)], n, i);
    const double w =
        spec.type == DenseWeights::kQC8W
            ? static_cast<double>(problem.scales[o]) * std::abs(static_cast<int>(static_cast<int8_t>(problem.bytes[at])))
            : std::fabs(static_cast<double>(FloatOfBf16Bits(problem.block_scales[at / kScaleBlock]))) * std::abs(number);
    size += static_cast<double>(row.scale) * std::max(unsigned_size, signed_size) * w;
  }
  return size + std::fabs(static_cast<double>(problem.bias[o]));
}

// As many roundings as there are terms in f32 (products; one sum of int8; sums of blocks), twice for the sum
// of the weights that a zero point multiplies, and some for scales and bias.
void ExpectLikeReference(const Problem& problem, const Floats& y) {
  const size_t n = problem.spec.inputs;
  const size_t terms = problem.spec.type == DenseWeights::kQC8W ? 1 : IsBlockwise(problem.spec.type) ? 2 * n / kScaleBlock : n;
  ExpectNear("y", RunReference(problem), y, [&](size_t i) {
    return (static_cast<double>(terms) + 8) * kU * SizeOfSum(problem, i / problem.spec.outputs, i % problem.spec.outputs);
  });
}

TEST(DenseSeam, PortableIsLikeTheReference) {
  for (const DenseWeights type : kTypes) {
    for (const size_t rows : {1, 2, 7}) {
      Problem problem(type, rows, 96, 37, 1);
      for (const bool in_place : {false, true}) {
        problem.spec.in_place = in_place;
        ExpectLikeReference(problem, RunSide(PortableDense(), problem.spec, problem, nullptr));
      }
    }
  }
}

// Outputs are split over threads in pieces of some 128 KiB of weights: here four to eleven. The same bits come out.
TEST(DenseSeam, ThreadsChangeNothing) {
  const test::Threads three(3);
  const ThreadPool* threads = three.pool.For(UINT64_MAX);
  for (const DenseWeights type : kTypes) {
    for (const size_t rows : {1, 5}) {
      Problem problem(type, rows, 1024, type == DenseWeights::kF32 ? 331 : 1031, 2);
      for (const bool in_place : {false, true}) {
        problem.spec.in_place = in_place;
        ExpectEqual("y", RunSide(PortableDense(), problem.spec, problem, nullptr),
                    RunSide(PortableDense(), problem.spec, problem, threads));
      }
    }
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

#if defined(TARN_HAVE_XNNPACK)

// What it leaves to the portable side: f16, int3, int2, and int4 with an odd number of blocks on x86 without AVX2, where its
// kernels crash.
bool XnnpackTakes(const DenseBackend& xnnpack, const DenseSpec& spec) {
  bool crashes = false;
#if defined(__x86_64__)
  crashes = spec.type == DenseWeights::kQB4W && spec.inputs / kScaleBlock % 2 != 0 && !__builtin_cpu_supports("avx2");
#endif
  EXPECT_EQ(xnnpack.takes(spec), spec.type != DenseWeights::kF16 && PlaneBits(spec.type) == 0 && !crashes);
  return xnnpack.takes(spec);
}

#endif

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
  for (const DenseWeights type : {DenseWeights::kQC8W, DenseWeights::kQB4W, DenseWeights::kQB3W, DenseWeights::kQB2W}) {
    for (const size_t rows : {1, 5}) {
      Problem problem(type, rows, 96, 37, 12);
      ForEachTable([&](const Kernels& kernels) {
        problem.spec.kernels = &kernels;
        ExpectPoisonStays(PortableDense(), problem);
        problem.spec.in_place = true;
        ExpectPoisonStays(PortableDense(), problem);
        problem.spec.in_place = false;
#if defined(TARN_HAVE_XNNPACK)
        const Result<const DenseBackend*> xnnpack = XnnpackDense();
        ASSERT_TRUE(xnnpack.ok());
        if (XnnpackTakes(*xnnpack.value(), problem.spec)) ExpectPoisonStays(*xnnpack.value(), problem);
#endif
      });
    }
  }
}

#if defined(TARN_HAVE_XNNPACK)

// Rows that fill its tiles, and rows that do not.
TEST(DenseSeam, XnnpackIsLikeTheReference) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  for (const DenseWeights type : kTypes) {
    for (const size_t inputs : {32, 96, 128, 1024}) {
      for (const size_t rows : {1, 2, 3, 7, 16, 20}) {
        Problem problem(type, rows, inputs, 37, 3);
        if (!XnnpackTakes(*xnnpack.value(), problem.spec)) continue;
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
    XnnpackTakes(*xnnpack.value(), problem.spec);
    problem.spec.in_place = true;
    EXPECT_FALSE(xnnpack.value()->takes(problem.spec));
  }
}

// The types of weights that our own kernels take a few rows of, on the CPUs that they were written for.
TEST(DenseSeam, FewRowsHaveKernels) {
  ASSERT_TRUE(XnnpackDense().ok());  // it asks what the CPU has
#if defined(__x86_64__)
  EXPECT_TRUE(FindRowKernel(DenseWeights::kQB4W) != nullptr || !__builtin_cpu_supports("avx2"));
  EXPECT_TRUE(FindRowKernel(DenseWeights::kQC8W) != nullptr || !__builtin_cpu_supports("avx512vnni"));
  const bool avx2_alone = __builtin_cpu_supports("avx2") && !__builtin_cpu_supports("avx512f");
  EXPECT_TRUE(FindRowKernel(DenseWeights::kQC8W) != nullptr || !avx2_alone || cpuinfo_has_x86_avxvnni());
#endif
  EXPECT_EQ(FindRowKernel(DenseWeights::kF32), nullptr);
  EXPECT_EQ(FindRowKernel(DenseWeights::kF16), nullptr);
}

// A few rows by our own kernels, where this CPU has one, and more by XNNPACK's: the same bits, also on threads.
TEST(DenseSeam, FewRowsHaveTheBitsOfMany) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  const test::Threads three(3);
  for (const DenseWeights type : {DenseWeights::kQB4W, DenseWeights::kQC8W}) {
    const RowKernel* kernel = FindRowKernel(type);
    // Of int8, XNNPACK's own kernels for ARM's dot products round one row and many differently.
    if (kernel == nullptr && type == DenseWeights::kQC8W) continue;
    const size_t most = kernel != nullptr ? kernel->most_rows : 7, many = most + 1;
    // Inputs that are no multiple of what a step of a kernel takes: of int8 alone.
    for (const size_t inputs : {32, 96, 1024, type == DenseWeights::kQC8W ? 35 : 64}) {
      for (const size_t outputs : {1, 7, 8, 17, 37, 1031}) {
        Problem problem(type, many, inputs, outputs, 13);
        if (!XnnpackTakes(*xnnpack.value(), problem.spec)) continue;
        if (outputs == 8) problem.block_scales.assign(problem.block_scales.size(), 0x0180);  // 1.5 * 2^-124: denormal when packed
        std::fill_n(problem.bytes.begin(), inputs / 2, static_cast<uint8_t>(type == DenseWeights::kQC8W ? 0x80 : 0x00));  // least
        // Alone, behind the last group of 8 inputs where there is one, in the other half of a panel.
        if (type == DenseWeights::kQC8W && outputs > 13) problem.bytes[13 * inputs + inputs - 1] = 0x80;
        const Floats expected = RunSide(*xnnpack.value(), problem.spec, problem, nullptr);
        const Floats x = problem.x;
        for (problem.rows = 1; problem.rows <= most; problem.rows += problem.rows < 20 ? 1 : 11) {
          const size_t first = many - problem.rows;
          std::copy(x.begin() + static_cast<ptrdiff_t>(first * inputs), x.end(), problem.x.begin());
          const Floats last(expected.begin() + static_cast<ptrdiff_t>(first * outputs), expected.end());
          ExpectEqual("y", last, RunSide(*xnnpack.value(), problem.spec, problem, nullptr));
          ExpectEqual("y", last, RunSide(*xnnpack.value(), problem.spec, problem, three.pool.For(UINT64_MAX)));
        }
      }
    }
  }
}

// Weights and scratch end where their memory ends, rows of y where theirs do, and rows of y are apart.
void FewRowsTouchNothingElse(DenseWeights type, size_t rows, size_t inputs) {
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  ASSERT_TRUE(xnnpack.ok());
  const RowKernel* kernel = FindRowKernel(type);
  if (kernel == nullptr) GTEST_SKIP() << "XNNPACK's own kernels are as fast here";
  ASSERT_TRUE(kernel->Takes(rows));
  for (const size_t outputs : {1, 8, 15, 17, 33}) {
    Problem problem(type, rows, inputs, outputs, 10);
    DenseSpec& spec = problem.spec;
    spec.y_stride = outputs + 3;
    const Result<DenseBytes> bytes = xnnpack.value()->measure(spec);
    ASSERT_TRUE(bytes.ok());
    const size_t panels = (outputs + kernel->outputs - 1) / kernel->outputs * kernel->PanelBytes(spec.inputs);
    ASSERT_EQ(bytes.value().packed, AlignUp(panels));
    Buffer<uint8_t> packed(static_cast<size_t>(bytes.value().packed), Place::kEnd);
    Buffer<uint8_t> scratch(static_cast<size_t>(bytes.value().scratch), Place::kEnd);
    Buffer<float> x(Floats(problem.x.begin(), problem.x.begin() + static_cast<ptrdiff_t>(rows * inputs)), Place::kEnd);
    Buffer<float> y(StridedSize(rows, outputs, spec.y_stride), Place::kEnd);
    Memory layer(bytes.value().layer);
    ASSERT_TRUE(xnnpack.value()->pack(spec, {packed.data(), packed.size()}).ok());
    const Result<DenseLayer*> made = xnnpack.value()->create(spec, packed.data(), layer.span());
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(xnnpack.value()->run(made.value(), rows, x.data(), y.data(), scratch.data(), nullptr).ok());
    xnnpack.value()->destroy(made.value());
    const Floats actual = Unstrided(y.values(), outputs, spec.y_stride);
    spec.y_stride = outputs;
    ExpectLikeReference(problem, actual);
  }
}

TEST(DenseSeam, FewRowsOfInt4TouchNothingElse) { FewRowsTouchNothingElse(DenseWeights::kQB4W, 3, 96); }
TEST(DenseSeam, FewRowsOfInt8TouchNothingElse) { FewRowsTouchNothingElse(DenseWeights::kQC8W, 3, 100); }

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

#endif

}  // namespace
}  // namespace tarn::testing
