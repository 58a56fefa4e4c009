// The portable side of the dense seam: weights are used where the model file has them, nothing is packed.
#include <new>

#include "kernels/dense/dense.h"
#include "runtime/core/arith.h"

namespace tarn {

namespace {

struct PortableLayer : DenseLayer {
  explicit PortableLayer(const DenseSpec& s) : spec(s) {}
  DenseSpec spec;
};

Result<DenseBytes> Measure(const DenseSpec& spec) {
  const uint64_t scratch = spec.type == DenseWeights::kQC8W ? spec.inputs : 0;  // one quantized row
  return DenseBytes{0, AlignUp(sizeof(PortableLayer)), scratch};
}

Status Pack(const DenseSpec&, Span<uint8_t>) { return Ok(); }

Result<DenseLayer*> Create(const DenseSpec& spec, const uint8_t*, Span<uint8_t> memory) {
  return static_cast<DenseLayer*>(new (memory.data()) PortableLayer(spec));
}

void Destroy(DenseLayer*) {}

Status Run(DenseLayer* layer, size_t rows, const float* x, float* y, uint8_t* scratch, pthreadpool*) {
  const DenseSpec& spec = static_cast<PortableLayer*>(layer)->spec;
  const Kernels& kernels = *spec.kernels;
  if (spec.type == DenseWeights::kF32) {
    kernels.dense_f32(rows, spec.inputs, spec.outputs, x, spec.x_stride, static_cast<const float*>(spec.weight), spec.bias, y,
                      spec.y_stride);
    return Ok();
  }
  int8_t* quantized = reinterpret_cast<int8_t*>(scratch);
  for (size_t row = 0; row < rows; ++row) {
    float scale;
    int32_t zero_point;
    kernels.quantize_qd8(spec.inputs, x + row * spec.x_stride, quantized, &scale, &zero_point);
    kernels.dense_qd8_qc8w(spec.inputs, spec.outputs, quantized, scale, zero_point, static_cast<const int8_t*>(spec.weight),
                           spec.scales, spec.bias, y + row * spec.y_stride);
  }
  return Ok();
}

}  // namespace

const DenseBackend& PortableDense() {
  static constexpr DenseBackend kBackend = {"portable", [](const DenseSpec&) { return true; }, Measure, Pack, Create, Destroy, Run};
  return kBackend;
}

}  // namespace tarn
