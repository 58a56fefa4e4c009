// The portable side of the dense seam: weights are used where the model file has them, but for int3 and int2, which vectors want in
// panels.
#include <algorithm>
#include <new>

#include "core/arith.h"
#include "core/planes.h"
#include "kernels/dense/dense.h"
#include "kernels/dense/panels.h"
#include "kernels/dense/portable_work.h"
#include "kernels/dense/split.h"

namespace tarn {

namespace {

struct PortableLayer : DenseLayer {
  PortableLayer(const DenseSpec& s, const uint8_t* p) : spec(s), packed(p) {}
  DenseSpec spec;
  const uint8_t* packed;  // panels, if the layer has them
};

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

// The outputs of a panel, of all rows.
void MultiplyPanel(const PortableWork& work, const uint8_t* packed, size_t panel) {
  const DenseSpec& spec = work.spec;
  const size_t o = panel * kPanelOutputs;
  const uint8_t* weight = packed + panel * PanelBytes(PlaneBits(spec.type), spec.inputs);
  spec.kernels->dense_qdu8_panel(PlaneArgsOf(work, weight, o, std::min(kPanelOutputs, spec.outputs - o)));
}

Status Run(DenseLayer* layer, size_t rows, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads) {
  const DenseSpec& spec = static_cast<PortableLayer*>(layer)->spec;
  uint8_t* sums = scratch + ParameterBytes(spec);
  const PortableWork work = {
      spec, rows, x, y, sums + SumBytes(spec), reinterpret_cast<Qdu8*>(scratch), reinterpret_cast<int32_t*>(sums)};
  if (IsQuantized(spec.type)) SplitRows(threads, rows, spec.inputs, [&](size_t row) { QuantizeRow(work, row); });
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
