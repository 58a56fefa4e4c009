#include "runtime/ops/row_store.h"

#include <cstring>

namespace tarn {
namespace {

RowType TypeOf(DType dtype) { return dtype == DType::kI8 ? RowType::kI8 : dtype == DType::kF16 ? RowType::kF16 : RowType::kF32; }

}  // namespace

Result<RowStates> RowStates::Read(const PrepareContext& context, const Heads& heads, uint32_t first, uint64_t rows, bool f32_only) {
  RowStates states;
  states.rows = rows;
  states.first = first;
  const uint64_t kv_heads = heads.kv_heads();
  TARN_ASSIGN_OR_RETURN(states.dtype, context.ExpectTypedState(first, "keys", {kv_heads, rows, heads.key_dim()}, /*or_i8=*/true));
  TARN_ASSIGN_OR_RETURN(const DType values_dtype,
                        context.ExpectTypedState(first + 1, "values", {kv_heads, rows, heads.value_dim()}, /*or_i8=*/true));
  if (values_dtype != states.dtype || (f32_only && states.dtype != DType::kF32)) {
    return Error(TARN_BAD_FORMAT, "states %u and %u are %s and %s, %s wanted", first, first + 1, DTypeName(states.dtype),
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
    return Error(TARN_BAD_FORMAT, "keys are %s, values %s, one dtype wanted", DTypeName(states.dtype), DTypeName(values_dtype));
  }
  if (states.dtype == DType::kI8) {
    TARN_RETURN_IF_ERROR(context.ExpectSourceState(2, "scales", {kv_heads, 2, 1}, /*source_axis=*/2));
  }
  return states;
}

RowStore::RowStore(const RunContext& context, const Heads& heads, const RowStates& states, size_t sequence, size_t kv_head)
    : kernels_(context.kernels),
      type_(TypeOf(states.dtype)),
      element_bytes_(DTypeBits(states.dtype) / 8),
      d_(heads.key_dim()),
      dv_(heads.value_dim()),
      rows_(states.rows),
      keys_(context.states[states.first].bytes(sequence) + kv_head * states.rows * d_ * element_bytes_),
      values_(context.states[states.first + 1].bytes(sequence) + kv_head * states.rows * dv_ * element_bytes_) {
  if (type_ == RowType::kI8) {
    key_scales_ = context.states[states.first + 2].f32(sequence) + kv_head * 2 * states.rows;
    value_scales_ = key_scales_ + states.rows;
  }
}

RowStore RowStore::Part(uint64_t begin, uint64_t rows) const {
  RowStore part = *this;
  part.rows_ = rows;
  part.keys_ += begin * d_ * element_bytes_;
  part.values_ += begin * dv_ * element_bytes_;
  if (type_ == RowType::kI8) {
    part.key_scales_ += begin;
    part.value_scales_ += begin;
  }
  return part;
}

void RowStore::Convert(const float* x, size_t n, uint8_t* to, float* scale) const {
  if (type_ == RowType::kF32) {
    std::memcpy(to, x, n * sizeof(float));
  } else if (type_ == RowType::kF16) {
    kernels_->f32_to_f16(n, x, reinterpret_cast<uint16_t*>(to));
  } else {
    kernels_->quantize_i8(n, x, reinterpret_cast<int8_t*>(to), scale);
  }
}

void RowStore::Revert(const uint8_t* from, float scale, size_t n, float* x) const {
  if (type_ == RowType::kF32) {
    std::memcpy(x, from, n * sizeof(float));
  } else if (type_ == RowType::kF16) {
    kernels_->scale_f16(n, reinterpret_cast<const uint16_t*>(from), 1, x);
  } else {
    kernels_->scale_i8(n, reinterpret_cast<const int8_t*>(from), scale, x);
  }
}

void RowStore::Store(uint64_t row, const float* k, const float* v) const {
  const bool scaled = type_ == RowType::kI8;
  Convert(k, d_, keys_ + row * d_ * element_bytes_, scaled ? key_scales_ + row : nullptr);
  Convert(v, dv_, values_ + row * dv_ * element_bytes_, scaled ? value_scales_ + row : nullptr);
}

void RowStore::Load(uint64_t row, float* k, float* v) const {
  const bool scaled = type_ == RowType::kI8;
  Revert(keys_ + row * d_ * element_bytes_, scaled ? key_scales_[row] : 1, d_, k);
  Revert(values_ + row * dv_ * element_bytes_, scaled ? value_scales_[row] : 1, dv_, v);
}

void RowStore::RoundTrip(const float* k, const float* v, float* k_out, float* v_out, float* work) const {
  uint8_t* stored = reinterpret_cast<uint8_t*>(work);
  float scale = 1;
  Convert(k, d_, stored, &scale);
  Revert(stored, scale, d_, k_out);
  Convert(v, dv_, stored, &scale);
  Revert(stored, scale, dv_, v_out);
}

CacheBlock RowStore::Block(uint64_t begin, uint64_t count) const {
  CacheBlock block{};
  block.rows = static_cast<size_t>(count);
  block.type = type_;
  block.keys = keys_ + begin * d_ * element_bytes_;
  block.key_stride = d_;
  block.values = values_ + begin * dv_ * element_bytes_;
  block.value_stride = dv_;
  if (type_ == RowType::kI8) {
    block.key_scales = key_scales_ + begin;
    block.value_scales = value_scales_ + begin;
  }
  return block;
}

}  // namespace tarn
