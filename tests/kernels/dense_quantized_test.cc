// Portable dense layers with int8, int4, int3 and int2 weights, and the quantization of their inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "core/planes.h"
#include "kernels/dense/panels.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/kernel_testing.h"
#include "variants/limits.h"

namespace tarn::testing {
namespace {

struct Quantized {
  std::vector<uint8_t> q;
  Qdu8 params;
};

Quantized Quantize(const Kernels& table, const Floats& x, size_t parts, Place place) {
  Buffer<float> in(x, place);
  Buffer<uint8_t> out(x.size(), place);
  Quantized result;
  table.quantize_qdu8(x.size(), in.data(), parts, out.data(), &result.params);
  result.q = out.values();
  return result;
}

// Every table rounds the same f32 products: equal, not near.
TEST(DenseQuantized, RowsAreTheSameInEveryTable) {
  ForEachTable([](const Kernels& kernels) {
    Random random(2);
    for (const size_t n : Sizes()) {
      for (int kind = 0; kind < 6; ++kind) {
        Floats x = random.Uniform(n, kind == 1 ? 0.5f : -3.0f, kind == 2 ? -0.5f : 3.0f);
        if (kind == 3) std::fill(x.begin(), x.end(), 0.0f);
        if (kind == 4) std::fill(x.begin(), x.end(), 1e-40f);
        if (kind == 5) x[n / 2] = 1e30f;
        const Place place = n % 2 == 0 ? Place::kEnd : Place::kShifted;
        for (const size_t parts : {1, 2, 8}) {
          if (n % parts != 0) continue;
          const Quantized expected = Quantize(Reference(), x, parts, place), actual = Quantize(kernels, x, parts, place);
          EXPECT_EQ(expected.params.scale, actual.params.scale) << "kind " << kind << " n " << n;
          EXPECT_EQ(expected.params.zero_point, actual.params.zero_point) << "kind " << kind << " n " << n;
          EXPECT_EQ(expected.q, actual.q) << "kind " << kind << " n " << n << " parts " << parts;
        }
      }
    }
  });
}

// An element is at most half a step from what it is read back as, and one step where the zero point was nudged; zero stays zero.
TEST(DenseQuantized, RowsAreWithinOneStep) {
  Random random(3);
  for (const size_t n : Sizes()) {
    Floats x = random.Uniform(n, -1.0f, 3.0f);
    x[0] = 0.0f;
    const Quantized result = Quantize(Reference(), x, 1, Place::kEnd);
    EXPECT_EQ(result.q[0], result.params.zero_point);
    for (size_t i = 0; i < n; ++i) {
      const float back = result.params.scale * static_cast<float>(result.q[i] - result.params.zero_point);
      EXPECT_LE(std::fabs(back - x[i]), 1.001f * result.params.scale);
    }
  }
}

TEST(DenseQuantized, PartsHoldEveryOtherElement) {
  ForEachTable([](const Kernels& kernels) {
    const size_t n = 152;
    const Floats x = Random(8).Uniform(n, -1.0f, 2.0f);
    const Quantized plain = Quantize(kernels, x, 1, Place::kEnd);
    for (const size_t parts : {2, 8}) {
      const Quantized split = Quantize(kernels, x, parts, Place::kEnd);
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(plain.q[i], split.q[i / parts + i % parts * (n / parts)]) << parts << " " << i;
    }
  });
}

// XNNPACK's own numbers are these less 128.
TEST(DenseQuantized, SignedRowsAreTheSameLess128) {
  ForEachTable([](const Kernels& kernels) {
    for (const size_t n : Sizes()) {
      const Floats x = Random(8).Uniform(n, -1.0f, 2.0f);
      const Quantized expected = Quantize(Reference(), x, 1, Place::kEnd);
      Buffer<float> in(x, Place::kEnd);
      Buffer<int8_t> q(n, Place::kEnd);
      Qdu8 params;
      kernels.quantize_qd8(n, in.data(), q.data(), &params);
      EXPECT_EQ(params.scale, expected.params.scale);
      EXPECT_EQ(params.zero_point, expected.params.zero_point);
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(q.data()[i], expected.q[i] - 128) << i;
    }
  });
}

// What a damaged model may give: a scale of NaN, and zeros, whichever element it is and whatever else the row holds.
TEST(DenseQuantized, RowsThatAreNotFinite) {
  ForEachTable([](const Kernels& kernels) {
    for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf(""), -std::nanf("")}) {
      for (const size_t n : {size_t{2}, size_t{40}, size_t{70}}) {
        for (size_t at = 0; at < n; ++at) {
          Floats x = Random(9).Uniform(n, -1.0f, 1.0f);
          x[at] = bad;
          for (const size_t parts : {1, 2, 8}) {
            if (n % parts != 0) continue;
            const Quantized result = Quantize(kernels, x, parts, Place::kEnd);
            EXPECT_TRUE(std::isnan(result.params.scale)) << bad << " at " << at;
            EXPECT_EQ(result.params.zero_point, 0);
            EXPECT_EQ(result.q, std::vector<uint8_t>(n, 0));
          }
        }
      }
    }
  });
}

// A layer with rows of u8 that hold the extremes side by side, and every kind of zero point.
struct Case {
  Case(size_t in_, size_t out_, size_t rows_, Random& random) : in(in_), out(out_), rows(rows_), y_stride(out + rows % 3) {
    q.resize(rows * in);
    for (uint8_t& value : q) value = static_cast<uint8_t>(random.Uniform(0.0f, 255.9f));
    std::fill(q.begin(), q.begin() + static_cast<ptrdiff_t>(in / 2), static_cast<uint8_t>(255));
    for (size_t r = 0; r < rows; ++r)
      params.push_back({random.Uniform(0.01f, 0.02f), std::vector<int32_t>{0, 128, 255, 37}[r % 4]});
    bias = random.Uniform(out, -1.0f, 1.0f);
  }
  size_t in, out, rows, y_stride;
  std::vector<uint8_t> q;
  std::vector<Qdu8> params;
  Floats bias;
};

Floats RunInt8(const Kernels& table, const Case& c, const std::vector<int8_t>& w, const Floats& scales, bool biased) {
  Buffer<uint8_t> input(c.q, Place::kEnd);
  Buffer<int8_t> weight(w, Place::kEnd);
  Buffer<Qdu8> params(c.params, Place::kEnd);
  Buffer<float> scale(scales, Place::kEnd), bias(c.bias, Place::kEnd), y(StridedSize(c.rows, c.out, c.y_stride), Place::kEnd);
  table.dense_qdu8_qc8w(c.rows, c.in, c.out, input.data(), params.data(), weight.data(), scale.data(),
                        biased ? bias.data() : nullptr, y.data(), c.y_stride);
  return Unstrided(y.values(), c.out, c.y_stride);
}

// The sum is exact; its conversion, the scale, their product and the bias round once each, the oracle once.
TEST(DenseQuantized, Int8) {
  ForEachTable([](const Kernels& kernels) {
    Random random(4);
    for (const size_t in : Sizes()) {
      const Case c(in, 1 + in % 9, 1 + in % 7, random);
      std::vector<int8_t> w(c.out * in);
      for (int8_t& value : w) value = static_cast<int8_t>(random.Uniform(-127.0f, 127.9f));
      std::fill(w.begin(), w.begin() + static_cast<ptrdiff_t>(in / 2), static_cast<int8_t>(in % 2 == 0 ? 127 : -128));
      const Floats scales = random.Uniform(c.out, 0.01f, 0.02f);
      for (const bool biased : {false, true}) {
        const Floats expected = RunInt8(Reference(), c, w, scales, biased);
        ExpectNear("y", expected, RunInt8(kernels, c, w, scales, biased), [&](size_t i) {
          return 5 * kU * (std::fabs(expected[i]) + (biased ? 2 * std::fabs(c.bias[i % c.out]) : 0.0f));
        });
      }
    }
  });
}

// The widest sums of the contract: so many products of 255 * 128 stay inside i32, of either sign.
TEST(DenseQuantized, Int8AtTheLimitOfItsAccumulator) {
  constexpr size_t kIn = kMaxInt8Inputs;
  static_assert(int64_t{255} * 128 * kIn <= std::numeric_limits<int32_t>::max());
  ForEachTable([&](const Kernels& kernels) {
    for (const int32_t weight : {127, -128}) {
      const std::vector<int8_t> w(kIn, static_cast<int8_t>(weight));
      for (const int32_t zero_point : {0, 255}) {
        const std::vector<uint8_t> q(kIn, static_cast<uint8_t>(255 - zero_point));
        const Qdu8 params = {1.0f, zero_point};
        const float weight_scale = 1.0f;
        float y = 0.0f;
        kernels.dense_qdu8_qc8w(1, kIn, 1, q.data(), &params, w.data(), &weight_scale, nullptr, &y, 1);
        EXPECT_EQ(y, static_cast<float>((zero_point == 0 ? 1 : -1) * 255 * weight * static_cast<int32_t>(kIn)));
      }
    }
  });
}

std::vector<uint16_t> Bf16(const Floats& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    bits.push_back(static_cast<uint16_t>(word >> 16));
  }
  return bits;
}

// The types that have a scale per block.
struct BlockType {
  const char* name;
  unsigned bits;
  size_t parts;

  size_t RowBytes(size_t n) const { return n * bits / 8; }
  int At(const uint8_t* row, size_t n, size_t i) const { return reference::BlockWeightAt(bits, row, n, i); }
  void Scale(const Kernels& table, size_t n, const uint8_t* row, const uint16_t* scales, float scale, float* y) const {
    bits == 4 ? table.scale_i4(n, row, scales, scale, y) : table.scale_planes(bits, n, row, scales, scale, y);
  }
};

constexpr BlockType kBlockTypes[] = {
    {"int4", 4, 2},
    {"int3", 3, 8},
    {"int2", 2, 8},
};

struct BlockWeights {
  BlockWeights(const BlockType& type, size_t in, size_t out, Random& random)
      : w(out * type.RowBytes(in)), scales(Bf16(random.Uniform(out * in / kScaleBlock, 0.01f, 0.03f))) {
    for (uint8_t& value : w) value = static_cast<uint8_t>(random.Uniform(0.0f, 255.9f));
    std::fill(w.begin(), w.begin() + static_cast<ptrdiff_t>(type.RowBytes(in) / 2),
              static_cast<uint8_t>(in % 64 == 0 ? 0x00 : 0xFF));
    for (size_t i = 0; type.bits == 3 && i < scales.size(); i += 3) scales[i] ^= 0x8000;  // negative
  }
  std::vector<uint8_t> w;
  std::vector<uint16_t> scales;
};

std::vector<int32_t> BlockSums(const BlockType& type, const Case& c) {
  const size_t parts = type.parts;
  std::vector<int32_t> sums(c.rows * c.in / kScaleBlock);
  for (size_t i = 0; i < c.rows * c.in; ++i) {
    const size_t r = i / c.in, at = i % c.in;
    sums[i / kScaleBlock] -= PlaneOffset(type.bits) * c.q[r * c.in + at / parts + at % parts * (c.in / parts)];
  }
  return sums;
}

// Rows from `row` on, outputs from `output` on.
struct Part {
  size_t row, rows, output, outputs;
};

void RunPart(const BlockType& type, const Kernels& table, const Case& c, const Part& part, const uint8_t* q, const int32_t* sums,
             const Qdu8* params, const uint8_t* weight, const uint16_t* scales, const float* bias, float* y, size_t y_stride) {
  q += part.row * c.in;
  params += part.row;
  weight += part.output * type.RowBytes(c.in);
  scales += part.output * c.in / kScaleBlock;
  if (bias != nullptr) bias += part.output;
  if (type.bits == 4) return table.dense_qdu8_qb4w(part.rows, c.in, part.outputs, q, params, weight, scales, bias, y, y_stride);
  table.dense_qdu8_planes({type.bits, part.rows, c.in, part.outputs, q, sums + part.row * c.in / kScaleBlock, params, weight,
                           scales, bias, y, y_stride});
}

Floats RunBlocks(const BlockType& type, const Kernels& table, const Case& c, const BlockWeights& w, bool biased) {
  Buffer<uint8_t> input(c.q, Place::kEnd), weight(w.w, Place::kEnd);
  Buffer<uint16_t> scales(w.scales, Place::kEnd);
  Buffer<int32_t> sums(BlockSums(type, c), Place::kEnd);
  Buffer<Qdu8> params(c.params, Place::kEnd);
  Buffer<float> bias(c.bias, Place::kEnd), y(StridedSize(c.rows, c.out, c.y_stride), Place::kEnd);
  RunPart(type, table, c, {0, c.rows, 0, c.out}, input.data(), sums.data(), params.data(), weight.data(), scales.data(),
          biased ? bias.data() : nullptr, y.data(), c.y_stride);
  return Unstrided(y.values(), c.out, c.y_stride);
}

// scale * (sum of q |s w| + zero_point * sum of |s w|): what the two sums of the kernel are made of.
double SizeOfSums(const BlockType& type, const Case& c, const BlockWeights& w, size_t r, size_t o) {
  double size = 0.0;
  for (size_t i = 0; i < c.in; ++i) {
    const double scale = reference::BlockScale(w.scales.data() + o * c.in / kScaleBlock, i);
    const int x = c.q[r * c.in + i / type.parts + i % type.parts * (c.in / type.parts)] + c.params[r].zero_point;
    size += std::fabs(scale) * x * std::abs(type.At(w.w.data() + o * type.RowBytes(c.in), c.in, i));
  }
  return size * static_cast<double>(c.params[r].scale);
}

// The layout of int3, by hand.
TEST(DenseQuantized, Int3InThreePlanes) {
  std::vector<uint8_t> row(12);
  row[3] = 0x80 | 5 << 3;  // A: of element 24 + 6 the second bit, of 24 + 1 all
  row[7] = 0x40;           // B: of element 24 + 7 the lowest bit
  row[11] = 0x80 | 1;      // C: of element 24 + 7 the highest bit, of 24 + 4 the lowest
  const int expected[8] = {-4, 5 - 4, -4, -4, 1 - 4, -4, 2 - 4, 5 - 4};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(PlaneWeightAt(3, row.data(), 32, 24 + i), expected[i]) << i;
}

TEST(DenseQuantized, Int2InTwoPlanes) {
  std::vector<uint8_t> row(8);
  row[3] = 3 << 6 | 1 << 2;  // A: of elements 24 + 3 and 24 + 1
  row[7] = 2 << 4 | 1;       // B: of elements 24 + 6 and 24 + 4
  const int expected[8] = {-3, -1, -3, 3, -1, -3, 1, -3};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(PlaneWeightAt(2, row.data(), 32, 24 + i), expected[i]) << i;
}

// A vector's sums of products are exact in i32 and in f32. Every lane takes at most a product and a sum per block, lanes are then
// added up (at most log2(16) more), the zero point, scale and bias round once each, the oracle once.
TEST(DenseQuantized, Blocks) {
  ForEachTable([](const Kernels& kernels) {
    for (const BlockType& type : kBlockTypes) {
      Random random(6);
      for (size_t blocks = 1; blocks <= 19; ++blocks) {
        const Case c(blocks * kScaleBlock, 1 + blocks % 6, 1 + blocks % 7, random);
        const BlockWeights w(type, c.in, c.out, random);
        for (const bool biased : {false, true}) {
          ExpectNear(type.name, RunBlocks(type, Reference(), c, w, biased), RunBlocks(type, kernels, c, w, biased), [&](size_t i) {
            const double bias = biased ? std::fabs(static_cast<double>(c.bias[i % c.out])) : 0.0;
            return (static_cast<double>(blocks) + 4 + 4) * kU * (SizeOfSums(type, c, w, i / c.out, i % c.out) + bias);
          });
        }
      }
    }
  });
}

// Panels, which tables without one leave out. q stands in one part there.
Floats RunPanels(const BlockType& type, const Kernels& table, const Case& c, const std::vector<uint8_t>& q, const BlockWeights& w) {
  std::vector<uint8_t> panels(PanelCount(c.out) * PanelBytes(type.bits, c.in));
  table.pack_panels(type.bits, c.in, c.out, w.w.data(), w.scales.data(), panels.data());
  Buffer<uint8_t> input(q, Place::kEnd), packed(panels, Place::kEnd);
  Buffer<int32_t> sums(BlockSums(type, c), Place::kEnd);
  Buffer<Qdu8> params(c.params, Place::kEnd);
  Buffer<float> bias(c.bias, Place::kEnd), y(StridedSize(c.rows, c.out, c.y_stride), Place::kEnd);
  for (size_t panel = 0; panel < PanelCount(c.out); ++panel) {
    const size_t o = panel * kPanelOutputs;
    table.dense_qdu8_panel({type.bits, c.rows, c.in, std::min(kPanelOutputs, c.out - o), input.data(), sums.data(), params.data(),
                            packed.data() + panel * PanelBytes(type.bits, c.in), nullptr, bias.data() + o, y.data() + o,
                            c.y_stride});
  }
  return Unstrided(y.values(), c.out, c.y_stride);
}

// As above; the sums of weights are rounded once.
TEST(DenseQuantized, PanelsAreLikeTheRows) {
  ForEachTable([](const Kernels& kernels) {
    if (kernels.dense_qdu8_panel == nullptr) return;
    Random random(12);
    for (size_t round = 0; round < 18; ++round) {
      const BlockType& type = kBlockTypes[1 + round % 2];
      const size_t blocks = 1 + round / 2;
      const Case c(blocks * kScaleBlock, 1 + blocks % 6, 1 + 5 * (blocks % 8), random);
      const BlockWeights w(type, c.in, c.out, random);
      std::vector<uint8_t> q(c.q.size());
      for (size_t i = 0; i < q.size(); ++i) {
        const size_t r = i / c.in, at = i % c.in;
        q[i] = c.q[r * c.in + at / type.parts + at % type.parts * (c.in / type.parts)];
      }
      ExpectNear("y", RunBlocks(type, Reference(), c, w, true), RunPanels(type, kernels, c, q, w), [&](size_t i) {
        const double bias = std::fabs(static_cast<double>(c.bias[i % c.out]));
        return (static_cast<double>(blocks) + 4 + 4) * kU * (SizeOfSums(type, c, w, i / c.out, i % c.out) + bias);
      });
    }
  });
}

// Where the sum of products cannot round (scales are powers of two, sums small), neither side may be off at all.
TEST(DenseQuantized, BlocksAreExactWhereF32Is) {
  ForEachTable([](const Kernels& kernels) {
    for (const BlockType& type : kBlockTypes) {
      Random random(7);
      for (const size_t in : {32, 96, 128, 4096}) {
        Case c(in, 5, 6, random);
        for (Qdu8& params : c.params) params.scale = 0.25f;
        BlockWeights w(type, in, c.out, random);
        for (uint16_t& scale : w.scales) scale = static_cast<uint16_t>((scale & 0x8000) | 0x3F00);  // 0.5
        ExpectEqual(type.name, RunBlocks(type, Reference(), c, w, false), RunBlocks(type, kernels, c, w, false));
      }
    }
  });
}

// A row alone, in a batch, with all outputs or with some: the same bits.
TEST(DenseQuantized, ARowDependsOnNothingElse) {
  ForEachTable([](const Kernels& kernels) {
    Random random(10);
    const Case c(224, 11, 9, random);
    std::vector<int8_t> w8(c.out * c.in);
    for (int8_t& value : w8) value = static_cast<int8_t>(random.Uniform(-128.0f, 127.9f));
    const Floats scales = random.Uniform(c.out, 0.01f, 0.02f);
    const Floats all8 = RunInt8(kernels, c, w8, scales, true);
    for (size_t r = 0; r < c.rows; ++r) {
      for (size_t o = 0; o < c.out; o += 2) {
        float y8;
        kernels.dense_qdu8_qc8w(1, c.in, 1, &c.q[r * c.in], &c.params[r], &w8[o * c.in], &scales[o], &c.bias[o], &y8, 1);
        EXPECT_EQ(y8, all8[r * c.out + o]) << r << " " << o;
      }
    }
    for (const BlockType& type : kBlockTypes) {
      const BlockWeights w(type, c.in, c.out, random);
      const Floats all = RunBlocks(type, kernels, c, w, true);
      const std::vector<int32_t> sums = BlockSums(type, c);
      for (size_t r = 0; r < c.rows; ++r) {
        for (size_t o = 0; o < c.out; o += 2) {
          float y;
          RunPart(type, kernels, c, {r, 1, o, 1}, c.q.data(), sums.data(), c.params.data(), w.w.data(), w.scales.data(),
                  c.bias.data(), &y, 1);
          EXPECT_EQ(y, all[r * c.out + o]) << type.name << " " << r << " " << o;
        }
      }
    }
  });
}

// Kernels take many rows in groups of their own: whatever the group, the bits are those of the row alone.
TEST(DenseQuantized, ManyRowsAreTheRowsAlone) {
  ForEachTable([](const Kernels& kernels) {
    Random random(12);
    for (const size_t in : {8, 12, 224, 1024, 1032}) {
      for (const size_t rows : {8, 9, 16, 24, 25, 41}) {
        Case c(in, rows == 16 ? 128 : 1 + (in + rows) % 131, rows, random);
        c.params[rows / 2].scale = std::nanf("");  // a poisoned row stays one, alone
        std::vector<int8_t> w(c.out * in);
        for (int8_t& value : w) value = static_cast<int8_t>(random.Uniform(-128.0f, 127.9f));
        for (size_t o = 0; o < c.out; o += 5) w[o * in + in / 2] = -128;  // no other weight has this value: some tiles have none
        const Floats scales = random.Uniform(c.out, 0.01f, 0.02f);
        for (const bool biased : {false, true}) {
          const Floats all = RunInt8(kernels, c, w, scales, biased);
          for (size_t r = 0; r < rows; ++r) {
            const Floats row(&all[r * c.out], &all[r * c.out] + c.out);
            if (r == rows / 2) {
              EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](float y) { return std::isnan(y); }));
              continue;
            }
            Floats alone(c.out);
            kernels.dense_qdu8_qc8w(1, in, c.out, &c.q[r * in], &c.params[r], w.data(), scales.data(),
                                    biased ? c.bias.data() : nullptr, alone.data(), c.out);
            ExpectEqual("row", alone, row);
          }
        }
      }
    }
  });
}

// A table that were left as a copy of the reference would pass everything above.
TEST(DenseQuantized, VectorTablesAreNotTheReference) {
  ForEachTable([](const Kernels& kernels) {
    if (std::strcmp(kernels.name, "reference") == 0) return;
    EXPECT_NE(kernels.dense_f16, Reference().dense_f16);
    EXPECT_NE(kernels.quantize_qdu8, Reference().quantize_qdu8);
    EXPECT_NE(kernels.quantize_qd8, Reference().quantize_qd8);
    EXPECT_NE(kernels.dense_qdu8_qc8w, Reference().dense_qdu8_qc8w);
    EXPECT_NE(kernels.dense_qdu8_qb4w, Reference().dense_qdu8_qb4w);
    EXPECT_NE(kernels.dense_qdu8_planes, Reference().dense_qdu8_planes);
    EXPECT_NE(kernels.scale_i4, Reference().scale_i4);
    EXPECT_NE(kernels.scale_planes, Reference().scale_planes);
  });
}

// The weight, times the block's scale, times `scale`: two products.
TEST(Embedding, ScaleBlocks) {
  ForEachTable([](const Kernels& kernels) {
    for (const BlockType& type : kBlockTypes) {
      Random random(11);
      for (size_t blocks = 1; blocks <= 5; ++blocks) {
        const size_t n = blocks * kScaleBlock;
        const BlockWeights row(type, n, 1, random);
        const auto run = [&](const Kernels& table) {
          Buffer<uint8_t> x(row.w, Place::kEnd);
          Buffer<uint16_t> scales(row.scales, Place::kEnd);
          Buffer<float> y(n, Place::kEnd);
          type.Scale(table, n, x.data(), scales.data(), 1.7f, y.data());
          return y.values();
        };
        const Floats expected = run(Reference());
        ExpectNear(type.name, expected, run(kernels), [&](size_t i) { return 3 * kU * std::fabs(expected[i]); });
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
