// Fully connected layers, y = x W^T + b, behind one seam with two sides: XNNPACK, which packs the weights, and a portable one made
// of our own kernels, which reads them where the model file has them (int3 and int2 it packs). XNNPACK does not take every layer:
// those that it leaves (takes()) run on the portable side.
//
// A row of x that holds a NaN or an infinity makes a row of y that is all NaN where x is quantized, on every side and CPU.
//
// A layer is used in three steps, which are three moments of a model's life:
//   Measure  from shapes alone: how many bytes it will take (tarn_requirements)
//   Pack     once per model: weights into the layout of the kernels of this CPU
//   Create   once per session: a runnable layer over packed weights, in memory that Measure counted
// Running allocates nothing. XNNPACK's operators hold the pointers of their last call, so a layer belongs to one session.
#ifndef TARN_KERNELS_DENSE_DENSE_H_
#define TARN_KERNELS_DENSE_DENSE_H_

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/result.h"
#include "core/span.h"
#include "kernels/kernels.h"
#include "runtime/platform/thread_pool.h"

namespace tarn {

enum class DenseWeights : uint8_t {
  kF32,   // f32 activations x f32 weights
  kF16,   // f32 activations x f16 weights, sums in f32
  kQC8W,  // activations quantized to int8 per row as they come (qd8) x int8 weights with a scale per output channel
  kQB4W,  // qd8 x int4 weights with a bf16 scale per block of kScaleBlock inputs of an output channel
  kQB3W,  // the same with int3
  kQB2W,  // and with int2
};

// Bits of a weight whose rows are planes (core/planes.h), else 0.
constexpr unsigned PlaneBits(DenseWeights type) { return type == DenseWeights::kQB3W ? 3 : type == DenseWeights::kQB2W ? 2 : 0; }
constexpr bool IsBlockwise(DenseWeights type) { return type == DenseWeights::kQB4W || PlaneBits(type) != 0; }
constexpr bool IsQuantized(DenseWeights type) { return type == DenseWeights::kQC8W || IsBlockwise(type); }

struct DenseSpec {
  size_t inputs;
  size_t outputs;
  DenseWeights type;
  const void* weight;            // [outputs, inputs]; read by Pack, or by every run of a layer that is not packed
  const float* scales;           // [outputs], > 0; kQC8W only
  const uint16_t* block_scales;  // bf16 [outputs, inputs / kScaleBlock], normal, > 0 but for int3; blockwise types only
  const float* bias;             // [outputs] or nullptr
  // Other ops read the weight too (tied embeddings): it is used where it is, so that it is not held twice.
  bool in_place;
  size_t x_stride;  // elements between rows of x, >= inputs
  size_t y_stride;
  uint64_t max_rows;
  const Kernels* kernels;  // for the portable side
};

struct DenseBytes {
  uint64_t packed;   // shared by all sessions of a model; a multiple of 64
  uint64_t layer;    // per session: the layer and XNNPACK's operators
  uint64_t scratch;  // during a run
};

// Bytes of the weight as it lies in the model file, and of its scales, which lie elsewhere.
constexpr uint64_t DenseWeightBytes(const DenseSpec& spec) {
  const uint64_t elements = uint64_t{spec.inputs} * spec.outputs;
  switch (spec.type) {
    case DenseWeights::kF32:
      return elements * 4;
    case DenseWeights::kF16:
      return elements * 2;
    case DenseWeights::kQC8W:
      return elements;
    case DenseWeights::kQB4W:
      return elements / 2;
    case DenseWeights::kQB3W:
    case DenseWeights::kQB2W:
      return elements / 8 * PlaneBits(spec.type);
  }
  return 0;
}
constexpr uint64_t DenseScaleBytes(const DenseSpec& spec) {
  if (spec.type == DenseWeights::kQC8W) return uint64_t{spec.outputs} * sizeof(float);
  if (IsBlockwise(spec.type)) return uint64_t{spec.inputs} / kScaleBlock * spec.outputs * sizeof(uint16_t);
  return 0;
}

// Each side derives its own.
struct DenseLayer {};

struct DenseBackend {
  const char* name;
  // A layer that it does not take goes to the portable side.
  bool (*takes)(const DenseSpec& spec);
  // Errors: TARN_UNSUPPORTED, TARN_OUT_OF_MEMORY. Reads no weights, of int4 the
  // scales.
  Result<DenseBytes> (*measure)(const DenseSpec& spec);
  // `packed` has the measured size and is aligned to 64.
  Status (*pack)(const DenseSpec& spec, Span<uint8_t> packed);
  // `memory` has the measured size and is aligned to 64. `packed` outlives the layer.
  Result<DenseLayer*> (*create)(const DenseSpec& spec, const uint8_t* packed, Span<uint8_t> memory);
  void (*destroy)(DenseLayer* layer);
  // x [rows, inputs] -> y [rows, outputs], 1 <= rows <= max_rows. May read, and ignore, up to kDenseOverread bytes past the last
  // row of x.
  Status (*run)(DenseLayer* layer, size_t rows, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads);
};

constexpr size_t kDenseOverread = 128;

const DenseBackend& PortableDense();

// The side on which a layer runs, where `preferred` takes what it can.
inline const DenseBackend& BackendOf(const DenseBackend& preferred, const DenseSpec& spec) {
  return preferred.takes(spec) ? preferred : PortableDense();
}

#if defined(TARN_HAVE_XNNPACK)
// Sets XNNPACK up at the first call (its allocator hook is process-wide). Errors: TARN_UNSUPPORTED (a CPU that XNNPACK does not run
// on).
Result<const DenseBackend*> XnnpackDense();
#endif

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_DENSE_H_
