// Softmax attention over a bounded cache of keys and values.
#include <cmath>

#include "tools/convert/attention.h"

namespace tarn::convert {

AttentionOp ParseSoftmax(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  const uint32_t capacity = fields->Size("max_context");
  const float scale = fields->Number("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim()))));

  AttentionOp op;
  op.type = format::OpAttributes::CacheAttention;
  op.attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
    return format::CreateCacheAttention(builder, &heads, capacity, scale).Union();
  };
  op.states.push_back({"K", {heads.kv_heads(), capacity, heads.head_dim()}});
  op.states.push_back({"V", {heads.kv_heads(), capacity, heads.value_dim()}});
  return op;
}

}  // namespace tarn::convert
