// The portable side of the dense seam: weights are used where the model file has them, but for int3 and int2, which vectors want in
// panels.
#include <algorithm>
#include <new>

#include "core/arith.h"
#include "core/planes.h"
#include "kernels/dense/dense.h"
#include "kernels/dense/panels.h"
#include "kernels/dense/split.h"

namespace tarn {

namespace {

struct PortableLayer : DenseLayer {
  PortableLayer(const DenseSpec& s, const uint8_t* p) : spec(s), packed(p) {}
  DenseSpec spec;
  const uint8_t* packed;  // panels, if the layer has them
};

bool HasPanels(const DenseSpec& spec) {
  return PlaneBits(spec.type) != 0 && !spec.in_place && spec.kernels->dense_qdu8_panel != nullptr;
}

// In how many parts the kernel wants a row of x.
size_t PartsOf(const DenseSpec& spec) {
  if (spec.type == DenseWeights::kQB4W) return 2;
  return PlaneBits(spec.type) != 0 && !HasPanels(spec) ? 8 : 1;
}

// Scratch of a quantized layer: the rows' scales and zero points, of planes the sums of their blocks, then the quantized rows.
uint64_t ParameterBytes(const DenseSpec& spec) { return AlignUp(spec.max_rows * sizeof(Qdu8)); }
uint64_t SumBytes(const DenseSpec& spec) {
  return PlaneBits(spec.type) != 0 ? AlignUp(spec.max_rows * (spec.inputs / kScaleBlock) * sizeof(int32_t)) : 0;
}

Result<DenseBytes> Measure(const DenseSpec& spec) {
  const uint64_t scratch = IsQuantized(spec.type) ? ParameterBytes(spec) + SumBytes(spec) + spec.max_rows * spec.inputs : 0;
  const uint64_t packed =
      HasPanels(spec) ? AlignUp(PanelCount(spec.outputs) * uint64_t{PanelBytes(PlaneBits(spec.type), spec.inputs)}) : 0;
  return DenseBytes{packed, AlignUp(sizeof(PortableLayer)), scratch};
}

Status Pack(const DenseSpec& spec, Span<uint8_t> packed) {
  if (!HasPanels(spec)) return Ok();
  spec.kernels->pack_panels(PlaneBits(spec.type), spec.inputs, spec.outputs, static_cast<const uint8_t*>(spec.weight),
                            spec.block_scales, packed.data());
  return Ok();
}

Result<DenseLayer*> Create(const DenseSpec& spec, const uint8_t* packed, Span<uint8_t> memory) {
  return static_cast<DenseLayer*>(new (memory.data()) PortableLayer(spec, packed));
}

void Destroy(DenseLayer*) {}

// What a run works on. Both of its loops are over items that share nothing, so threads change no result.
struct Work {
  const DenseSpec& spec;
  size_t rows;
  const float* x;
  float* y;
  uint8_t* quantized;  // [rows, inputs]
  Qdu8* parameters;    // [rows]
  int32_t* sums;       // [rows, inputs / kScaleBlock], of planes only
};

// `factor` times the sum of each block of a row, which stands in `parts`.
void SumBlocks(int32_t factor, size_t inputs, size_t parts, const uint8_t* q, int32_t* sums) {
  const size_t part = inputs / parts, elements = kScaleBlock / parts;
  for (size_t b = 0; b < inputs / kScaleBlock; ++b) {
    int32_t sum = 0;
    for (size_t p = 0; p < parts; ++p) {
      for (size_t i = 0; i < elements; ++i) sum += q[p * part + b * elements + i];
    }
    sums[b] = factor * sum;
  }
}

void QuantizeRow(const Work& work, size_t row) {
  const DenseSpec& spec = work.spec;
  const size_t parts = PartsOf(spec);
  uint8_t* q = work.quantized + row * spec.inputs;
  spec.kernels->quantize_qdu8(spec.inputs, work.x + row * spec.x_stride, parts, q, work.parameters + row);
  if (const unsigned bits = PlaneBits(spec.type); bits != 0) {
    SumBlocks(-PlaneOffset(bits), spec.inputs, parts, q, work.sums + row * (spec.inputs / kScaleBlock));
  }
}

// Planes from `weight` on, for the outputs from o on.
PlaneArgs PlaneArgsOf(const Work& work, const uint8_t* weight, size_t o, size_t count) {
  const DenseSpec& spec = work.spec;
  const float* bias = spec.bias == nullptr ? nullptr : spec.bias + o;
  return {PlaneBits(spec.type),
          work.rows,
          spec.inputs,
          count,
          work.quantized,
          work.sums,
          work.parameters,
          weight,
          spec.block_scales + o * (spec.inputs / kScaleBlock),
          bias,
          work.y + o,
          spec.y_stride};
}

// Outputs o to o + count, of all rows.
void Multiply(const Work& work, size_t o, size_t count) {
  const DenseSpec& spec = work.spec;
  const Kernels& kernels = *spec.kernels;
  const size_t at = o * spec.inputs;
  const float* bias = spec.bias == nullptr ? nullptr : spec.bias + o;
  float* y = work.y + o;
  switch (spec.type) {
    case DenseWeights::kF32:
      return kernels.dense_f32(work.rows, spec.inputs, count, work.x, spec.x_stride, static_cast<const float*>(spec.weight) + at,
                               bias, y, spec.y_stride);
    case DenseWeights::kF16:
      return kernels.dense_f16(work.rows, spec.inputs, count, work.x, spec.x_stride, static_cast<const uint16_t*>(spec.weight) + at,
                               bias, y, spec.y_stride);
    case DenseWeights::kQC8W:
      return kernels.dense_qdu8_qc8w(work.rows, spec.inputs, count, work.quantized, work.parameters,
                                     static_cast<const int8_t*>(spec.weight) + at, spec.scales + o, bias, y, spec.y_stride);
    case DenseWeights::kQB3W:
    case DenseWeights::kQB2W: {
      const uint8_t* weight = static_cast<const uint8_t*>(spec.weight) + PlaneRowBytes(PlaneBits(spec.type), at);
      return kernels.dense_qdu8_planes(PlaneArgsOf(work, weight, o, count));
    }
    case DenseWeights::kQB4W:
      return kernels.dense_qdu8_qb4w(work.rows, spec.inputs, count, work.quantized, work.parameters,
                                     static_cast<const uint8_t*>(spec.weight) + at / 2, spec.block_scales + at / kScaleBlock, bias,
                                     y, spec.y_stride);
  }
}

// The outputs of a panel, of all rows.
void MultiplyPanel(const Work& work, const uint8_t* packed, size_t panel) {
  const DenseSpec& spec = work.spec;
  const size_t o = panel * kPanelOutputs;
  const uint8_t* weight = packed + panel * PanelBytes(PlaneBits(spec.type), spec.inputs);
  spec.kernels->dense_qdu8_panel(PlaneArgsOf(work, weight, o, std::min(kPanelOutputs, spec.outputs - o)));
}

Status Run(DenseLayer* layer, size_t rows, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads) {
  const DenseSpec& spec = static_cast<PortableLayer*>(layer)->spec;
  uint8_t* sums = scratch + ParameterBytes(spec);
  const Work work = {spec, rows, x, y, sums + SumBytes(spec), reinterpret_cast<Qdu8*>(scratch), reinterpret_cast<int32_t*>(sums)};
  if (IsQuantized(spec.type)) Split(threads, rows, 1, [&](size_t row, size_t) { QuantizeRow(work, row); });
  if (HasPanels(spec)) {
    const uint8_t* packed = static_cast<PortableLayer*>(layer)->packed;
    Split(threads, PanelCount(spec.outputs), 1, [&](size_t panel, size_t) { MultiplyPanel(work, packed, panel); });
    return Ok();
  }
  // Of weights, what a thread reads in some microseconds; a multiple of every kernel's tile.
  constexpr uint64_t kStepBytes = uint64_t{128} << 10;
  constexpr size_t kTile = 4;
  const uint64_t row_bytes = DenseWeightBytes(spec) / spec.outputs;
  const size_t step = static_cast<size_t>(std::max<uint64_t>(kStepBytes / row_bytes / kTile, 1)) * kTile;
  Split(threads, spec.outputs, step, [&](size_t first, size_t count) { Multiply(work, first, count); });
  return Ok();
}

}  // namespace

const DenseBackend& PortableDense() {
  static constexpr DenseBackend kBackend = {"portable", [](const DenseSpec&) { return true; }, Measure, Pack, Create, Destroy, Run};
  return kBackend;
}

}  // namespace tarn
