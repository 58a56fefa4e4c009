// Dense layers through the seam, one by one, and all of a model's in a row: with 64 rows (a chunk of a prompt, which has no head)
// the GEMM rate that XNNPACK reaches alone, with one row (a token) the rate at which weights stream from memory. Caller's thread.
#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>

#include "core/arith.h"
#include "kernels/dense/dense.h"
#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

struct Shape {
  size_t outputs, inputs;
};
constexpr size_t kLargest = size_t{32768} * 1024;  // elements of the largest weight

std::vector<Shape> BlockShapes(const BenchModel& m) {
  return {{3 * m.width + kHeads, m.width}, {m.width, m.width}, {m.inner, m.width}, {m.width, m.inner}};
}

struct Type {
  const char* name;
  DenseWeights type;
};
// The same bytes for every layer: what they are makes no difference to the time, as long as they are ordinary numbers.
const void* Weights(DenseWeights type) {
  static const std::vector<uint8_t> bytes = [] {
    std::vector<uint8_t> made(kLargest);
    uint32_t x = 1;
    for (uint8_t& byte : made) byte = static_cast<uint8_t>((x = x * 1664525u + 1013904223u) >> 24);
    return made;
  }();
  static const Floats floats = Numbers(size_t{4096} * 1024);
  return type == DenseWeights::kF32 ? static_cast<const void*>(floats.data()) : bytes.data();
}

struct Free {
  void operator()(uint8_t* p) const { std::free(p); }
};
using Aligned = std::unique_ptr<uint8_t, Free>;
Aligned Allocate(uint64_t bytes) {
  return Aligned(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, static_cast<size_t>(AlignUp(bytes + 1)))));
}

// A layer that is packed and ready to run.
class Layer {
 public:
  Layer(const DenseBackend& backend, const Kernels& kernels, const Shape& shape, DenseWeights type) : backend_(backend) {
    static const Floats scales(32768, 0.01f);
    static const std::vector<uint16_t> block_scales(kLargest / kScaleBlock, 0x3c23);  // 0.01 in bf16
    DenseSpec spec{};
    spec.inputs = shape.inputs;
    spec.outputs = shape.outputs;
    spec.type = type;
    spec.weight = Weights(type);
    spec.scales = type == DenseWeights::kQC8W ? scales.data() : nullptr;
    spec.block_scales = IsBlockwise(type) ? block_scales.data() : nullptr;
    spec.x_stride = shape.inputs;
    spec.y_stride = shape.outputs;
    spec.max_rows = kChunk;
    spec.kernels = &kernels;
    if (!backend.takes(spec)) return;
    const Result<DenseBytes> bytes = backend.measure(spec);
    if (!bytes.ok()) return;
    packed_ = Allocate(bytes.value().packed);
    memory_ = Allocate(bytes.value().layer);
    scratch_ = Allocate(bytes.value().scratch);
    if (!backend.pack(spec, {packed_.get(), static_cast<size_t>(bytes.value().packed)}).ok()) return;
    const Result<DenseLayer*> layer =
        backend.create(spec, packed_.get(), {memory_.get(), static_cast<size_t>(bytes.value().layer)});
    if (layer.ok()) layer_ = layer.value();
    weight_bytes_ = static_cast<size_t>(DenseWeightBytes(spec));
  }
  Layer(Layer&& other) noexcept
      : backend_(other.backend_),
        packed_(std::move(other.packed_)),
        memory_(std::move(other.memory_)),
        scratch_(std::move(other.scratch_)),
        layer_(std::exchange(other.layer_, nullptr)),
        weight_bytes_(other.weight_bytes_) {}
  ~Layer() {
    if (layer_ != nullptr) backend_.destroy(layer_);
  }

  bool ok() const { return layer_ != nullptr; }
  size_t weight_bytes() const { return weight_bytes_; }
  bool Run(size_t rows, const float* x, float* y) { return backend_.run(layer_, rows, x, y, scratch_.get(), nullptr).ok(); }

 private:
  const DenseBackend& backend_;
  Aligned packed_, memory_, scratch_;
  DenseLayer* layer_ = nullptr;
  size_t weight_bytes_ = 0;
};

void RunLayers(benchmark::State& state, const DenseBackend& backend, const Kernels& kernels, const std::vector<Shape>& shapes,
               DenseWeights type, size_t rows) {
  std::vector<Layer> layers;
  size_t weight_bytes = 0;
  size_t widest = 0;
  for (const Shape& shape : shapes) {
    layers.emplace_back(backend, kernels, shape, type);
    if (!layers.back().ok()) return state.SkipWithError("this side does not take the layer");
    weight_bytes += layers.back().weight_bytes();
    widest = std::max({widest, shape.inputs, shape.outputs});
  }
  const Floats x = Numbers(rows * widest + kDenseOverread);
  Floats y(rows * widest);
  bool ok = true;
  Measure(state, rows, weight_bytes, [&](size_t) {
    for (Layer& layer : layers) ok = layer.Run(rows, x.data(), y.data()) && ok;
  });
  if (!ok) state.SkipWithError("a layer failed");
}

void AddLayers(const DenseBackend& backend, const Kernels& kernels, const BenchModel& model, Type type, size_t rows) {
  const std::string kind = std::string(backend.name) + "/" + type.name + "/";
  const std::string tail = "/rows:" + std::to_string(rows);
  std::vector<Shape> all;
  for (const Shape& shape : BlockShapes(model)) {
    Add("dense/" + kind + std::to_string(shape.outputs) + "x" + std::to_string(shape.inputs) + tail,
        [&, shape, type, rows](benchmark::State& state) { RunLayers(state, backend, kernels, {shape}, type.type, rows); });
    all.insert(all.end(), model.layers, shape);
  }
  if (type.type == DenseWeights::kF32) return;  // all of lm-big is 800 MB of it, twice
  if (rows == 1) all.push_back({model.vocab, model.width});
  Add("dense_model/" + kind + model.name + tail,
      [&, all, type, rows](benchmark::State& state) { RunLayers(state, backend, kernels, all, type.type, rows); });
}

void AddBackend(const DenseBackend& backend, const Kernels& kernels, std::initializer_list<Type> types) {
  for (const Type& type : types) {
    for (const BenchModel& model : kModels) {
      for (const size_t rows : {size_t{1}, kChunk}) AddLayers(backend, kernels, model, type, rows);
      if (!IsQuantized(type.type)) continue;
      for (const size_t rows : {2, 3, 4, 5, 6, 7, 8, 12, 16, 32})
        AddLayers(backend, kernels, model, type, rows);  // speculation, batches
    }
  }
}

}  // namespace

void AddDense(const Kernels& kernels) {
#if defined(TARN_HAVE_XNNPACK)
  const Result<const DenseBackend*> xnnpack = XnnpackDense();
  if (xnnpack.ok()) {
    AddBackend(*xnnpack.value(), kernels,
               {{"f32", DenseWeights::kF32}, {"int8", DenseWeights::kQC8W}, {"int4", DenseWeights::kQB4W}});
  }
#endif
  AddBackend(PortableDense(), kernels,
             {{"f32", DenseWeights::kF32},
              {"f16", DenseWeights::kF16},
              {"int8", DenseWeights::kQC8W},
              {"int4", DenseWeights::kQB4W},
              {"int3", DenseWeights::kQB3W},
              {"int2", DenseWeights::kQB2W}});
}

}  // namespace tarn::bench
