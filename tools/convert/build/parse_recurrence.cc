// Attention objects of the token mixers of recurrence.h.
#include <string>

#include "tools/convert/build/recurrence.h"

namespace tarn::convert {
namespace {

// All columns of q, k and v meet each other.
void CheckEqualHeads(Fields* fields, const AttentionContext& context) {
  const format::Heads& heads = context.heads;
  if (heads.kv_heads() == heads.heads() && heads.value_dim() == heads.head_dim()) return;
  fields->FailAt("system", ValueText(Json(fields->Text("system"))) +
                               " has q, k and v of one width: num_kv_heads must be num_heads, and value_head_dim head_dim");
}

}  // namespace

AttentionOp ParseShortConv(Fields* fields, const AttentionContext& context) {
  CheckEqualHeads(fields, context);
  const auto taps = static_cast<uint32_t>(fields->Integer("taps", kMinConvTaps, kMaxConvTaps, 3));
  const bool bias = fields->Bool("bias", false);
  AttentionOp op;
  op.state_kind = StateKind::kRows;
  op.composed.emplace();
  op.composed->heads = [taps, bias](GraphBuilder* builder, const std::string& prefix, format::Slice q, format::Slice k,
                                    format::Slice v) { return AddShortConv(builder, prefix, taps, bias, q, k, v); };
  return op;
}

AttentionOp ParseRgLru(Fields* fields, const AttentionContext& context) {
  CheckEqualHeads(fields, context);
  const uint32_t width = context.heads.heads() * context.heads.value_dim();
  RgLru recurrence{};
  recurrence.blocks = fields->Size("gate_blocks", context.heads.heads(), kMaxHeads);
  if (width % recurrence.blocks != 0) {
    fields->FailAt("gate_blocks",
                   std::to_string(recurrence.blocks) + " does not divide the " + std::to_string(width) + " columns of all heads");
  }
  recurrence.rate_scale = fields->PositiveNumber("rate_scale", 8.0f);
  AttentionOp op;
  op.reads_qk = false;
  op.state_kind = StateKind::kLasting;
  op.composed.emplace();
  op.composed->heads = [recurrence](GraphBuilder* builder, const std::string& prefix, format::Slice, format::Slice,
                                    format::Slice v) { return AddRgLru(builder, prefix, recurrence, v); };
  return op;
}

}  // namespace tarn::convert
