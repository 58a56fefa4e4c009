#include "runtime/ops/attention/row_store.h"

#include <cstring>

namespace tarn {

RowType RowTypeOf(DType dtype) { return dtype == DType::kI8 ? RowType::kI8 : dtype == DType::kF16 ? RowType::kF16 : RowType::kF32; }

void StoreRow(const Kernels& kernels, DType dtype, size_t n, const float* x, uint8_t* to, float* scale) {
  if (dtype == DType::kF32) {
    std::memcpy(to, x, n * sizeof(float));
  } else if (dtype == DType::kF16) {
    kernels.f32_to_f16(n, x, reinterpret_cast<uint16_t*>(to));
  } else {
    kernels.quantize_i8(n, x, reinterpret_cast<int8_t*>(to), scale);
  }
}

void LoadRow(const Kernels& kernels, DType dtype, size_t n, const uint8_t* from, const float* scale, float* x) {
  if (dtype == DType::kF32) {
    std::memcpy(x, from, n * sizeof(float));
  } else if (dtype == DType::kF16) {
    kernels.scale_f16(n, reinterpret_cast<const uint16_t*>(from), 1, x);
  } else {
    kernels.scale_i8(n, reinterpret_cast<const int8_t*>(from), *scale, x);
  }
}

Result<RowStates> RowStates::Read(const PrepareContext& context, const Heads& heads, uint32_t first, uint64_t rows, bool f32_only) {
  RowStates states;
  states.rows = rows;
  states.first = first;
  const uint64_t kv_heads = heads.kv_heads();
  TARN_ASSIGN_OR_RETURN(states.dtype, context.ExpectTypedState(first, "keys", {kv_heads, rows, heads.key_dim()}, /*or_i8=*/true));
  TARN_ASSIGN_OR_RETURN(const DType values_dtype,
                        context.ExpectTypedState(first + 1, "values", {kv_heads, rows, heads.value_dim()}, /*or_i8=*/true));
  if (values_dtype != states.dtype || (f32_only && states.dtype != DType::kF32)) {
    return Error(TARN_BAD_FORMAT, "states %u and %u are %s and %s, %s expected", first, first + 1, DTypeName(states.dtype),
                 DTypeName(values_dtype), f32_only ? "f32" : "one dtype");
  }
  if (states.dtype == DType::kI8) TARN_RETURN_IF_ERROR(context.ExpectState(first + 2, "scales", {kv_heads, 2, rows}));
  return states;
}

Result<RowStates> RowStates::ReadOfSource(const PrepareContext& context, const Heads& heads, uint64_t rows) {
  RowStates states;
  states.rows = rows;
  const uint64_t kv_heads = heads.kv_heads();
  TARN_ASSIGN_OR_RETURN(states.dtype, context.ExpectTypedSourceState(0, "keys", {kv_heads, 1, heads.key_dim()}, /*source_axis=*/1));
  TARN_ASSIGN_OR_RETURN(const DType values_dtype,
                        context.ExpectTypedSourceState(1, "values", {kv_heads, 1, heads.value_dim()}, /*source_axis=*/1));
  if (values_dtype != states.dtype) {
    return Error(TARN_BAD_FORMAT, "keys are %s, values %s, one dtype expected", DTypeName(states.dtype), DTypeName(values_dtype));
  }
  if (states.dtype == DType::kI8) {
    TARN_RETURN_IF_ERROR(context.ExpectSourceState(2, "scales", {kv_heads, 2, 1}, /*source_axis=*/2));
  }
  return states;
}

uint64_t RowBytes(const RowStates& states, const Heads& heads) {
  const uint64_t elements = heads.key_dim() + heads.value_dim();
  return elements * (DTypeBits(states.dtype) / 8) + (states.dtype == DType::kI8 ? 2 * sizeof(float) : 0);
}

void AddRowWrites(const RowStates& states, const Heads& heads, uint64_t row, StateWrites* writes) {
  const uint64_t kv_heads = heads.kv_heads(), element = DTypeBits(states.dtype) / 8;
  const auto add = [&](uint32_t state, uint64_t parts, uint64_t bytes) { writes->Add({state, parts, row * bytes, bytes}); };
  add(states.first, kv_heads, heads.key_dim() * element);
  add(states.first + 1, kv_heads, heads.value_dim() * element);
  if (states.dtype == DType::kI8) add(states.first + 2, 2 * kv_heads, sizeof(float));
}

RowStore::RowStore(const RunContext& context, const Heads& heads, const RowStates& states, size_t sequence, size_t kv_head)
    : kernels_(context.kernels),
      dtype_(states.dtype),
      element_bytes_(DTypeBits(states.dtype) / 8),
      d_(heads.key_dim()),
      dv_(heads.value_dim()),
      rows_(states.rows),
      keys_(context.states[states.first].bytes(sequence) + kv_head * states.rows * d_ * element_bytes_),
      values_(context.states[states.first + 1].bytes(sequence) + kv_head * states.rows * dv_ * element_bytes_) {
  if (dtype_ == DType::kI8) {
    key_scales_ = context.states[states.first + 2].f32(sequence) + kv_head * 2 * states.rows;
    value_scales_ = key_scales_ + states.rows;
  }
}

RowStore RowStore::Part(uint64_t begin, uint64_t rows) const {
  RowStore part = *this;
  part.rows_ = rows;
  part.keys_ += begin * d_ * element_bytes_;
  part.values_ += begin * dv_ * element_bytes_;
  if (dtype_ == DType::kI8) {
    part.key_scales_ += begin;
    part.value_scales_ += begin;
  }
  return part;
}

void RowStore::Store(uint64_t row, const float* k, const float* v) const {
  const bool scaled = dtype_ == DType::kI8;
  StoreRow(*kernels_, dtype_, d_, k, keys_ + row * d_ * element_bytes_, scaled ? key_scales_ + row : nullptr);
  StoreRow(*kernels_, dtype_, dv_, v, values_ + row * dv_ * element_bytes_, scaled ? value_scales_ + row : nullptr);
}

void RowStore::Load(uint64_t row, float* k, float* v) const {
  const bool scaled = dtype_ == DType::kI8;
  LoadRow(*kernels_, dtype_, d_, keys_ + row * d_ * element_bytes_, scaled ? key_scales_ + row : nullptr, k);
  LoadRow(*kernels_, dtype_, dv_, values_ + row * dv_ * element_bytes_, scaled ? value_scales_ + row : nullptr, v);
}

void RowStore::RoundTrip(const float* k, const float* v, float* k_out, float* v_out, float* work) const {
  uint8_t* stored = reinterpret_cast<uint8_t*>(work);
  float scale = 1;
  StoreRow(*kernels_, dtype_, d_, k, stored, &scale);
  LoadRow(*kernels_, dtype_, d_, stored, &scale, k_out);
  StoreRow(*kernels_, dtype_, dv_, v, stored, &scale);
  LoadRow(*kernels_, dtype_, dv_, stored, &scale, v_out);
}

CacheBlock RowStore::Block(uint64_t begin, uint64_t count) const {
  CacheBlock block{};
  block.rows = static_cast<size_t>(count);
  block.type = RowTypeOf(dtype_);
  block.keys = keys_ + begin * d_ * element_bytes_;
  block.key_stride = d_;
  block.values = values_ + begin * dv_ * element_bytes_;
  block.value_stride = dv_;
  if (dtype_ == DType::kI8) {
    block.key_scales = key_scales_ + begin;
    block.value_scales = value_scales_ + begin;
  }
  return block;
}

}  // namespace tarn
