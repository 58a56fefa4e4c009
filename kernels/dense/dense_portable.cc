// The portable side of the dense seam: weights are used where the model file has them, nothing is packed.
#include <algorithm>
#include <new>

#include "core/arith.h"
#include "kernels/dense/dense.h"
#include "kernels/dense/split.h"

namespace tarn {

namespace {

struct PortableLayer : DenseLayer {
  explicit PortableLayer(const DenseSpec& s) : spec(s) {}
  DenseSpec spec;
};

bool IsQuantized(const DenseSpec& spec) { return spec.type == DenseWeights::kQC8W || spec.type == DenseWeights::kQB4W; }

// Scratch of a quantized layer: the rows' scales and zero points, then the quantized rows.
uint64_t ParameterBytes(const DenseSpec& spec) { return AlignUp(spec.max_rows * sizeof(Qdu8)); }

Result<DenseBytes> Measure(const DenseSpec& spec) {
  const uint64_t scratch = IsQuantized(spec) ? ParameterBytes(spec) + spec.max_rows * spec.inputs : 0;
  return DenseBytes{0, AlignUp(sizeof(PortableLayer)), scratch};
}

Status Pack(const DenseSpec&, Span<uint8_t>) { return Ok(); }

Result<DenseLayer*> Create(const DenseSpec& spec, const uint8_t*, Span<uint8_t> memory) {
  return static_cast<DenseLayer*>(new (memory.data()) PortableLayer(spec));
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
};

void QuantizeRow(const Work& work, size_t row) {
  const DenseSpec& spec = work.spec;
  spec.kernels->quantize_qdu8(spec.inputs, work.x + row * spec.x_stride, spec.type == DenseWeights::kQB4W,
                              work.quantized + row * spec.inputs, work.parameters + row);
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
    case DenseWeights::kQB4W:
      return kernels.dense_qdu8_qb4w(work.rows, spec.inputs, count, work.quantized, work.parameters,
                                     static_cast<const uint8_t*>(spec.weight) + at / 2, spec.block_scales + at / kI4Block, bias, y,
                                     spec.y_stride);
  }
}

Status Run(DenseLayer* layer, size_t rows, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads) {
  const DenseSpec& spec = static_cast<PortableLayer*>(layer)->spec;
  const Work work = {spec, rows, x, y, scratch + ParameterBytes(spec), reinterpret_cast<Qdu8*>(scratch)};
  if (IsQuantized(spec)) Split(threads, rows, 1, [&](size_t row, size_t) { QuantizeRow(work, row); });
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
