// The side of the dense seam that packs int4 weights into panels for our own kernels.
#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/dense/dense.h"
#include "kernels/dense/int4_panels.h"
#include "kernels/dense/split.h"
#include "runtime/core/arith.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tarn {

namespace {

struct PanelLayer : DenseLayer {
  PanelLayer(const DenseSpec& s, const uint8_t* p) : spec(s), panels(p) {}
  DenseSpec spec;
  const uint8_t* panels;
};

bool Takes(const DenseSpec& spec) {
  return spec.type == DenseWeights::kQB4W && !spec.in_place && spec.inputs % kI4Block == 0 &&
         spec.kernels->int4_panels != Reference().int4_panels;
}

Int4PanelLayout LayoutOf(const DenseSpec& spec) { return {spec.kernels->int4_panels->outputs, spec.inputs}; }

// A run's scratch: what Int4Rows points to.
struct Scratch {
  explicit Scratch(const DenseSpec& spec)
      : offsets(AlignUp(spec.max_rows * sizeof(Qdu8))),
        q(offsets + AlignUp(spec.max_rows * (spec.inputs / kI4Block) * sizeof(int32_t))),
        bytes(q + spec.max_rows * spec.inputs) {}
  uint64_t offsets, q, bytes;
};

Result<DenseBytes> Measure(const DenseSpec& spec) {
  const Int4PanelLayout layout = LayoutOf(spec);
  const uint64_t panels = (spec.outputs + layout.outputs - 1) / layout.outputs;
  return DenseBytes{panels * layout.bytes, AlignUp(sizeof(PanelLayer)), Scratch(spec).bytes};
}

// Output o of the layer becomes output `lane` of a panel.
void PackOutput(const DenseSpec& spec, const Int4PanelLayout& layout, size_t o, size_t lane, uint8_t* panel) {
  const size_t blocks = spec.inputs / kI4Block;
  const uint8_t* from = static_cast<const uint8_t*>(spec.weight) + o * spec.inputs / 2;
  uint16_t* scales = reinterpret_cast<uint16_t*>(panel + layout.scales);
  const uint8_t flip = spec.kernels->int4_panels->flip;
  double sum = 0.0;
  for (size_t block = 0; block < blocks; ++block, from += kI4Block / 2) {
    uint8_t* to = panel + layout.weights + layout.Byte(lane, block * kI4Block);
    int block_sum = 0;
    for (size_t i = 0; i < kI4Block / 2; ++i) {  // inputs i and 16 + i
      const int shift = i % 2 == 0 ? 0 : 4;
      const int low = from[i / 2] >> shift & 15, high = from[kI4Block / 4 + i / 2] >> shift & 15;
      to[i / 4 * layout.outputs * 4 + i % 4] = static_cast<uint8_t>((low | high << 4) ^ flip);
      block_sum += low + high - 16;
    }
    const uint16_t bits = spec.block_scales[o * blocks + block];
    scales[block * layout.outputs + lane] = bits;
    const uint32_t word = uint32_t{bits} << 16;
    float scale;
    std::memcpy(&scale, &word, sizeof(scale));
    sum += static_cast<double>(scale) * block_sum;
  }
  reinterpret_cast<float*>(panel)[lane] = static_cast<float>(sum * static_cast<double>(spec.kernels->int4_panels->unit));
  reinterpret_cast<float*>(panel + layout.bias)[lane] = spec.bias == nullptr ? 0.0f : spec.bias[o];
}

Status Pack(const DenseSpec& spec, Span<uint8_t> packed) {
  const Int4PanelLayout layout = LayoutOf(spec);
  uint8_t* panel = packed.data();
  for (size_t o = 0; o < spec.outputs; o += layout.outputs, panel += layout.bytes) {
    const size_t count = std::min(layout.outputs, spec.outputs - o);
    std::memset(panel, 0, layout.bytes);
    for (size_t lane = 0; lane < count; ++lane) PackOutput(spec, layout, o + lane, lane, panel);
  }
  return Ok();
}

Result<DenseLayer*> Create(const DenseSpec& spec, const uint8_t* packed, Span<uint8_t> memory) {
  return static_cast<DenseLayer*>(new (memory.data()) PanelLayer(spec, packed));
}

void Destroy(DenseLayer*) {}

// What a run works on. Both of its loops are over items that share nothing, so threads change no result.
struct Work {
  const PanelLayer& layer;
  Int4PanelLayout layout;
  size_t rows;
  const float* x;
  float* y;
  int8_t* q;
  int32_t* offsets;
  Qdu8* params;
};

void QuantizeRow(const Work& work, size_t row) {
  const DenseSpec& spec = work.layer.spec;
  const size_t blocks = spec.inputs / kI4Block;
  const int8_t* q = work.q + row * spec.inputs;
  spec.kernels->quantize_qd8(spec.inputs, work.x + row * spec.x_stride, work.q + row * spec.inputs, work.params + row);
  for (size_t block = 0; block < blocks; ++block, q += kI4Block) {
    int32_t sum = 0;
    for (size_t i = 0; i < kI4Block; ++i) sum += q[i];
    work.offsets[row * blocks + block] = -8 * sum;
  }
}

void MultiplyPanels(const Work& work, size_t panel, size_t count) {
  const DenseSpec& spec = work.layer.spec;
  const size_t first = panel * work.layout.outputs, last = std::min(spec.outputs, first + count * work.layout.outputs);
  spec.kernels->int4_panels->multiply({work.rows, spec.inputs, work.q, work.offsets, work.params}, last - first,
                                      work.layer.panels + panel * work.layout.bytes, work.y + first, spec.y_stride);
}

Status Run(DenseLayer* base, size_t rows, const float* x, float* y, uint8_t* memory, const ThreadPool* threads) {
  const PanelLayer& layer = *static_cast<PanelLayer*>(base);
  const Int4PanelLayout layout = LayoutOf(layer.spec);
  const Scratch scratch(layer.spec);
  const Work work = {layer,
                     layout,
                     rows,
                     x,
                     y,
                     reinterpret_cast<int8_t*>(memory + scratch.q),
                     reinterpret_cast<int32_t*>(memory + scratch.offsets),
                     reinterpret_cast<Qdu8*>(memory)};
  Split(threads, rows, 1, [&](size_t row, size_t) { QuantizeRow(work, row); });
  // Of weights, what a thread reads in some microseconds.
  constexpr size_t kStepBytes = size_t{128} << 10;
  const size_t panels = (layer.spec.outputs + layout.outputs - 1) / layout.outputs;
  const size_t step = std::max<size_t>(kStepBytes / layout.bytes, 1);
  Split(threads, panels, step, [&](size_t panel, size_t count) { MultiplyPanels(work, panel, count); });
  return Ok();
}

}  // namespace

const DenseBackend& PanelDense() {
  static constexpr DenseBackend kBackend = {"panels", Takes, Measure, Pack, Create, Destroy, Run};
  return kBackend;
}

// XNNPACK's kernels multiply matrices of bytes where the CPU does (i8mm), twice the products of an instruction of ours.
bool PanelsComeFirst() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM
  return (getauxval(AT_HWCAP2) & kI8mm) == 0;
#else
  return true;
#endif
}

}  // namespace tarn
