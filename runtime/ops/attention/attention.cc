#include "runtime/ops/attention/attention.h"

namespace tarn {

Result<Heads> Heads::Of(const format::Heads& numbers) {
  const auto in_range = [](uint32_t n) { return n >= 1 && n <= kMaxHeads; };
  if (!in_range(numbers.heads()) || !in_range(numbers.kv_heads()) || !in_range(numbers.head_dim()) ||
      !in_range(numbers.value_dim()) || numbers.heads() % numbers.kv_heads() != 0) {
    return Error(TARN_BAD_FORMAT,
                 "heads %u, kv_heads %u, head_dim %u, value_dim %u: numbers from 1 to %u expected, kv_heads a divisor of heads",
                 numbers.heads(), numbers.kv_heads(), numbers.head_dim(), numbers.value_dim(), kMaxHeads);
  }
  Heads heads;
  heads.heads_ = numbers.heads();
  heads.kv_heads_ = numbers.kv_heads();
  heads.key_dim_ = numbers.head_dim();
  heads.value_dim_ = numbers.value_dim();
  return heads;
}

Result<Heads> Heads::Read(const PrepareContext& context, const format::Heads& numbers, uint32_t shared_keys) {
  TARN_ASSIGN_OR_RETURN(Heads heads, Of(numbers));
  if (shared_keys > 0 && (heads.group() != 1 || heads.heads() % shared_keys != 0)) {
    return Error(TARN_BAD_FORMAT, "key_heads %u, heads %u, kv_heads %u: a divisor of heads expected, and kv_heads as many as heads",
                 shared_keys, numbers.heads(), numbers.kv_heads());
  }
  heads.shared_keys_ = shared_keys;
  TARN_RETURN_IF_ERROR(heads.ExpectOperands(context));
  return heads;
}

Status Heads::ExpectOperands(const PrepareContext& context) const {
  TARN_RETURN_IF_ERROR(context.ExpectTokens());
  Axis axis;
  TARN_RETURN_IF_ERROR(ExpectQueries(context, &axis));
  return ExpectKeys(context, 1, &axis);
}

Status Heads::ExpectQueries(const PrepareContext& context, Axis* axis) const {
  TARN_RETURN_IF_ERROR(context.ExpectInput(0, "q", query_width()));
  TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "o", uint64_t{heads_} * value_dim_));
  *axis = context.input_axis(0);
  if (*axis == context.output_axis(0)) return Ok();
  return Error(TARN_BAD_FORMAT, "q and o have different numbers of rows");
}

Status Heads::ExpectKeys(const PrepareContext& context, uint32_t first, Axis* axis) const {
  TARN_RETURN_IF_ERROR(context.ExpectInput(first, "k", key_width()));
  TARN_RETURN_IF_ERROR(context.ExpectInput(first + 1, "v", uint64_t{kv_heads_} * value_dim_));
  *axis = context.input_axis(first);
  if (*axis == context.input_axis(first + 1)) return Ok();
  return Error(TARN_BAD_FORMAT, "k and v have different numbers of rows");
}

HeadSlices::HeadSlices(const RunContext& context, const Heads& heads, size_t sequence, size_t kv_head) {
  const size_t row = sequence * context.tokens;
  const auto at = [row](const Operand& operand, size_t column) { return operand.f32() + row * operand.stride + column; };
  q = at(context.inputs[0], heads.query_column(kv_head));
  q_stride = context.inputs[0].stride;
  k = at(context.inputs[1], heads.key_column(kv_head));
  k_stride = context.inputs[1].stride;
  v = at(context.inputs[2], kv_head * heads.value_dim());
  v_stride = context.inputs[2].stride;
  o = at(context.outputs[0], kv_head * heads.group() * heads.value_dim());
  o_stride = context.outputs[0].stride;
}

HeldState::HeldState(const Kernels& kernels, const StateBuffer& buffer, DType dtype, size_t sequence, size_t first, size_t elements,
                     float* copy)
    : f32_(copy), f16_(nullptr), elements_(elements) {
  if (dtype == DType::kF32) {
    f32_ = buffer.f32(sequence) + first;
    return;
  }
  f16_ = reinterpret_cast<uint16_t*>(buffer.bytes(sequence)) + first;
  kernels.scale_f16(elements, f16_, 1, f32_);
}

void HeldState::WriteBack(const Kernels& kernels) const {
  if (f16_ != nullptr) kernels.f32_to_f16(elements_, f32_, f16_);
}

void HeldState::Round(const Kernels& kernels) const {
  WriteBack(kernels);
  if (f16_ != nullptr) kernels.scale_f16(elements_, f16_, 1, f32_);
}

}  // namespace tarn
