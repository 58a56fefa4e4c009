// The XNNPACK side of the dense seam, and the only file that includes xnnpack.h.
//
// XNNPACK allocates through a process-wide hook, when an operator is created. The hook below sends what a thread allocates inside
// an AllocationScope to that scope: to a session's block, or, while measuring, to the heap with a count. Anything else goes to the
// heap.
#include <cpuinfo.h>
#include <xnnpack.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/arith.h"
#include "core/bump.h"
#include "kernels/denormals.h"
#include "kernels/dense/dense.h"
#include "kernels/dense/split.h"
#include "kernels/dense/xnnpack_rows.h"
#include "kernels/dense/xnnpack_threads.h"

namespace tarn {
namespace {

// ---- Allocation ----

class AllocationScope {
 public:
  explicit AllocationScope(Bump* block) : block_(block), outer_(current_) { current_ = this; }
  ~AllocationScope() { current_ = outer_; }
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

  static AllocationScope* current() { return current_; }
  Bump* block() const { return block_; }  // nullptr: heap
  void Count(size_t bytes) { counted_ += Bump::PieceBytes(bytes); }
  uint64_t counted() const { return counted_; }

 private:
  static thread_local AllocationScope* current_;
  Bump* block_;
  AllocationScope* outer_;
  uint64_t counted_ = 0;
};
thread_local AllocationScope* AllocationScope::current_ = nullptr;

// Stands before every allocation and says who frees it.
struct alignas(kAlignment) Prefix {
  size_t bytes;
  bool on_heap;
};

void* HookAllocateAligned(void*, size_t alignment, size_t bytes) {
  if (alignment > kAlignment || bytes > SIZE_MAX - sizeof(Prefix)) return nullptr;
  AllocationScope* scope = AllocationScope::current();
  const size_t total = bytes + sizeof(Prefix);
  if (scope != nullptr) scope->Count(total);
  const bool on_heap = scope == nullptr || scope->block() == nullptr;
  void* memory = nullptr;
  if (on_heap) {
    if (posix_memalign(&memory, kAlignment, total) != 0) return nullptr;
  } else {
    memory = scope->block()->Take(total);
    if (memory == nullptr) return nullptr;
  }
  Prefix* prefix = new (memory) Prefix{bytes, on_heap};
  return prefix + 1;
}

void HookReleaseAligned(void*, void* pointer) {
  if (pointer == nullptr) return;
  Prefix* prefix = static_cast<Prefix*>(pointer) - 1;
  if (prefix->on_heap) std::free(prefix);
}

void* HookAllocate(void* context, size_t bytes) { return HookAllocateAligned(context, kAlignment, bytes); }

void* HookReallocate(void* context, void* pointer, size_t bytes) {
  void* grown = HookAllocate(context, bytes);
  if (grown == nullptr || pointer == nullptr) return grown;
  const size_t old_bytes = (static_cast<Prefix*>(pointer) - 1)->bytes;
  std::memcpy(grown, pointer, old_bytes < bytes ? old_bytes : bytes);
  HookReleaseAligned(context, pointer);
  return grown;
}

constexpr xnn_allocator kAllocator = {nullptr,           HookAllocate, HookReallocate, HookReleaseAligned, HookAllocateAligned,
                                      HookReleaseAligned};

// ---- Packed weights ----

// A weights cache with one place in it: the layer's. Three uses: `capacity` 0 learns the size (and refuses the space), `writable`
// packs, `readable` says that the weights are there already.
class WeightPlace {
 public:
  WeightPlace() { provider_ = {this, LookUp, Reserve, Insert, IsFinalized, Address, Delete}; }
  WeightPlace(const WeightPlace&) = delete;
  WeightPlace& operator=(const WeightPlace&) = delete;

  void SetWritable(Span<uint8_t> memory) { writable_ = memory; }
  void SetReadable(const uint8_t* packed) { readable_ = packed; }
  xnn_weights_cache_t provider() { return &provider_; }
  size_t wanted() const { return wanted_; }

 private:
  static WeightPlace* From(void* context) { return static_cast<WeightPlace*>(context); }
  static size_t LookUp(void* context, const xnn_weights_cache_look_up_key*) {
    return From(context)->readable_ != nullptr ? 0 : SIZE_MAX;
  }
  static void* Reserve(void* context, size_t bytes) {
    WeightPlace* place = From(context);
    place->wanted_ = bytes;
    return bytes <= place->writable_.size() ? place->writable_.data() : nullptr;
  }
  static size_t Insert(void*, const xnn_weights_cache_look_up_key*, void*, size_t) { return 0; }
  static bool IsFinalized(void*) { return true; }
  static void* Address(void* context, size_t) {
    WeightPlace* place = From(context);
    return place->readable_ != nullptr ? const_cast<uint8_t*>(place->readable_) : place->writable_.data();
  }
  static xnn_status Delete(void*) { return xnn_status_success; }

  xnn_weights_cache_provider provider_;
  Span<uint8_t> writable_;
  const uint8_t* readable_ = nullptr;
  size_t wanted_ = 0;
};

Status Check(xnn_status status, const char* what) {
  switch (status) {
    case xnn_status_success:
      return Ok();
    case xnn_status_out_of_memory:
      return Error(TARN_OUT_OF_MEMORY, "XNNPACK: %s: out of memory", what);
    case xnn_status_unsupported_hardware:
      return Error(TARN_UNSUPPORTED, "XNNPACK: %s: not supported by this CPU; open the model with portable dense layers", what);
    default:
      return Error(TARN_INTERNAL, "XNNPACK: %s: status %d", what, static_cast<int>(status));
  }
}

// ---- What differs between types ----

// The operator that multiplies. `setup` is that of quantized rows; nullptr: x goes in as it is.
struct Multiply {
  xnn_status (*create)(const DenseSpec& spec, xnn_weights_cache_t weights, xnn_operator_t* op);
  xnn_status (*reshape)(xnn_operator_t op, size_t rows, pthreadpool_t threads);
  xnn_status (*setup)(xnn_operator_t op, const int8_t* x, float* y, const xnn_quantization_params* parameters);
};

constexpr Multiply kMultiplyF32 = {
    [](const DenseSpec& spec, xnn_weights_cache_t weights, xnn_operator_t* op) {
      return xnn_create_fully_connected_nc_f32(spec.inputs, spec.outputs, spec.x_stride, spec.y_stride,
                                               static_cast<const float*>(spec.weight), spec.bias, -INFINITY, INFINITY, /*flags=*/0,
                                               /*code_cache=*/nullptr, weights, op);
    },
    xnn_reshape_fully_connected_nc_f32,
    nullptr,
};

constexpr Multiply kMultiplyQC8W = {
    [](const DenseSpec& spec, xnn_weights_cache_t weights, xnn_operator_t* op) {
      return xnn_create_fully_connected_nc_qd8_f32_qc8w(spec.inputs, spec.outputs, /*input_stride=*/spec.inputs, spec.y_stride,
                                                        spec.scales, static_cast<const int8_t*>(spec.weight), spec.bias, -INFINITY,
                                                        INFINITY, /*flags=*/0, /*code_cache=*/nullptr, weights, op);
    },
    xnn_reshape_fully_connected_nc_qd8_f32_qc8w,
    xnn_setup_fully_connected_nc_qd8_f32_qc8w,
};

// It wants inputs to be a multiple of the block and scales to be normal and > 0, as the model's validation does.
constexpr Multiply kMultiplyQB4W = {
    [](const DenseSpec& spec, xnn_weights_cache_t weights, xnn_operator_t* op) {
      return xnn_create_fully_connected_nc_qd8_f32_qb4w(
          spec.inputs, spec.outputs, /*input_stride=*/spec.inputs, spec.y_stride, kScaleBlock, /*kernel_zero_point=*/8,
          spec.block_scales, spec.weight, spec.bias, -INFINITY, INFINITY, /*flags=*/0, /*code_cache=*/nullptr, weights, op);
    },
    xnn_reshape_fully_connected_nc_qd8_f32_qb4w,
    xnn_setup_fully_connected_nc_qd8_f32_qb4w,
};

const Multiply& MultiplyOf(const DenseSpec& spec) {
  switch (spec.type) {
    case DenseWeights::kQC8W:
      return kMultiplyQC8W;
    case DenseWeights::kQB4W:
      return kMultiplyQB4W;
    default:  // Takes() says no to f16, int3 and int2
      return kMultiplyF32;
  }
}

// ---- Layers ----

struct XnnpackLayer : DenseLayer {
  XnnpackLayer(const DenseSpec& s, const uint8_t* p) : spec(s), type(MultiplyOf(s)), packed(p), few_rows(FindRowKernel(s.type)) {}

  DenseSpec spec;
  const Multiply& type;
  const uint8_t* packed;
  const RowKernel* few_rows;  // may be nullptr
  WeightPlace weights;
  xnn_operator_t multiply = nullptr;
  size_t rows = 0;  // that the operators are shaped for
};

void Destroy(DenseLayer* layer) {
  const xnn_operator_t multiply = static_cast<XnnpackLayer*>(layer)->multiply;
  if (multiply != nullptr) xnn_delete_operator(multiply);
}

// A tile of a multiplication reads the parameters of as many rows as it is high, and stores rows that there are not over the last
// one that there is: parameters behind the last must equal it. XNNPACK sees to 10 of them, but has tiles of 14 rows.
constexpr size_t kParametersBehind = 16;
static_assert(sizeof(Qdu8) <= sizeof(xnn_quantization_params), "the scratch holds either");
static_assert(kParametersBehind >= XNN_EXTRA_QUANTIZATION_PARAMS);

// Scratch of a quantized layer: the rows' scales and zero points and those behind them, then the quantized rows.
uint64_t QuantizationBytes(uint64_t rows) { return AlignUp((rows + kParametersBehind) * sizeof(xnn_quantization_params)); }

// Its int4 kernels for x86 without AVX2 read panels of 4 outputs with loads that want 16 bytes of alignment, and crash where an odd
// number of blocks gives none.
bool IsMisaligned([[maybe_unused]] const DenseSpec& spec) {
#if defined(__x86_64__) || defined(__i386__)
  return spec.type == DenseWeights::kQB4W && spec.inputs / kScaleBlock % 2 != 0 && !cpuinfo_has_x86_avx2();
#else
  return false;
#endif
}

// Its f16 layers round activations and, where the CPU has f16 arithmetic, sums to f16: ours keep both in f32. It has neither int3
// nor int2.
bool Takes(const DenseSpec& spec) {
  return !spec.in_place && spec.type != DenseWeights::kF16 && PlaneBits(spec.type) == 0 && !IsMisaligned(spec);
}

Result<DenseBytes> Measure(const DenseSpec& spec) {
  DenseBytes bytes{};
  WeightPlace place;
  AllocationScope scope(nullptr);
  xnn_operator_t op = nullptr;
  const xnn_status status = MultiplyOf(spec).create(spec, place.provider(), &op);
  // The place refuses the space that it is asked for: out of memory is the expected end.
  if (place.wanted() == 0) return Check(status == xnn_status_success ? xnn_status_invalid_state : status, "measure");
  bytes.packed = AlignUp(place.wanted());
  if (MultiplyOf(spec).setup != nullptr) {
    bytes.scratch = QuantizationBytes(spec.max_rows) + spec.max_rows * spec.inputs + XNN_EXTRA_BYTES;
  }
  bytes.layer = Bump::PieceBytes(sizeof(XnnpackLayer)) + scope.counted();
  return bytes;
}

Status Pack(const DenseSpec& spec, Span<uint8_t> packed) {
  WeightPlace place;
  place.SetWritable(packed);
  xnn_operator_t op = nullptr;
  TARN_RETURN_IF_ERROR(Check(MultiplyOf(spec).create(spec, place.provider(), &op), "pack"));
  xnn_delete_operator(op);
  return Ok();
}

Result<DenseLayer*> Create(const DenseSpec& spec, const uint8_t* packed, Span<uint8_t> memory) {
  Bump bump(memory);
  void* place = bump.Take(sizeof(XnnpackLayer));
  if (place == nullptr) return Error(TARN_INTERNAL, "dense layer: %zu bytes are too few", memory.size());
  XnnpackLayer* layer = new (place) XnnpackLayer(spec, packed);
  layer->weights.SetReadable(packed);
  AllocationScope scope(&bump);
  TARN_RETURN_IF_ERROR(Check(layer->type.create(spec, layer->weights.provider(), &layer->multiply), "create"));
  return static_cast<DenseLayer*>(layer);
}

// What the quantization of a run's rows works on.
struct Rows {
  const DenseSpec& spec;
  const float* x;
  int8_t* quantized;
  xnn_quantization_params* parameters;
};

// XNNPACK's own operator would lose a NaN. A row that is not finite has a scale of NaN here, too; FillPoisoned() makes its outputs.
void QuantizeRow(const Rows& rows, size_t row) {
  const DenseSpec& spec = rows.spec;
  Qdu8 params;
  spec.kernels->quantize_qd8(spec.inputs, rows.x + row * spec.x_stride, rows.quantized + row * spec.inputs, &params);
  rows.parameters[row] = {params.zero_point - 128, params.scale};
}

// XNNPACK clamps outputs to [-inf, inf], where some CPUs make -inf of a NaN.
void FillPoisoned(const Rows& rows, size_t count, float* y) {
  for (size_t r = 0; r < count; ++r) {
    const float scale = rows.parameters[r].scale;
    if (std::isnan(scale)) std::fill_n(y + r * rows.spec.y_stride, rows.spec.outputs, scale);
  }
}

Status RunQuantized(XnnpackLayer* layer, size_t count, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads) {
  const DenseSpec& spec = layer->spec;
  const Rows rows = {spec, x, reinterpret_cast<int8_t*>(scratch + QuantizationBytes(spec.max_rows)),
                     reinterpret_cast<xnn_quantization_params*>(scratch)};
  SplitRows(threads, count, spec.inputs, [&](size_t row) { QuantizeRow(rows, row); });
  std::fill_n(rows.parameters + count, kParametersBehind, rows.parameters[count - 1]);
  TARN_RETURN_IF_ERROR(Check(layer->type.setup(layer->multiply, rows.quantized, y, rows.parameters), "setup"));
  TARN_RETURN_IF_ERROR(Check(xnn_run_operator(layer->multiply, AsPthreadpool(threads)), "run"));
  FillPoisoned(rows, count, y);
  return Ok();
}

// Panels share nothing, so threads change no result. A NaN for a scale makes every output NaN.
void RunFewRows(const XnnpackLayer& layer, size_t count, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads) {
  const DenseSpec& spec = layer.spec;
  const RowKernel& kernel = *layer.few_rows;
  uint8_t* q = scratch + QuantizationBytes(spec.max_rows);
  Qdu8* params = reinterpret_cast<Qdu8*>(scratch);
  SplitRows(threads, count, spec.inputs, [&](size_t row) {
    const float* from = x + row * spec.x_stride;
    uint8_t* to = q + row * spec.inputs;
    kernel.wants_u8 ? spec.kernels->quantize_qdu8(spec.inputs, from, /*parts=*/1, to, params + row)
                    : spec.kernels->quantize_qd8(spec.inputs, from, reinterpret_cast<int8_t*>(to), params + row);
  });
  const QuantizedRows rows = {count, spec.inputs, q, params};
  Split(threads, spec.outputs, kernel.outputs, [&](size_t first, size_t outputs) {
    const FlushDenormals flush;  // as XNNPACK's tasks: packed scales may be denormal
    const uint8_t* panel = layer.packed + first / kernel.outputs * kernel.PanelBytes(spec.inputs);
    kernel.multiply(rows, panel, outputs, y + first, spec.y_stride);
  });
}

Status Run(DenseLayer* base, size_t rows, const float* x, float* y, uint8_t* scratch, const ThreadPool* threads) {
  XnnpackLayer* layer = static_cast<XnnpackLayer*>(base);
  if (layer->few_rows != nullptr && layer->few_rows->Takes(rows)) {
    RunFewRows(*layer, rows, x, y, scratch, threads);
    return Ok();
  }
  if (rows != layer->rows) {
    layer->rows = 0;
    TARN_RETURN_IF_ERROR(Check(layer->type.reshape(layer->multiply, rows, AsPthreadpool(threads)), "reshape"));
    layer->rows = rows;
  }
  if (layer->type.setup != nullptr) return RunQuantized(layer, rows, x, y, scratch, threads);
  TARN_RETURN_IF_ERROR(Check(xnn_setup_fully_connected_nc_f32(layer->multiply, x, y), "setup"));
  return Check(xnn_run_operator(layer->multiply, AsPthreadpool(threads)), "run");
}

}  // namespace

Result<const DenseBackend*> XnnpackDense() {
  static constexpr DenseBackend kBackend = {"xnnpack", Takes, Measure, Pack, Create, Destroy, Run};
  TARN_RETURN_IF_ERROR(Check(xnn_initialize(&kAllocator), "initialize"));
  return &kBackend;
}

}  // namespace tarn
