// Cache attention (MATH F3): softmax over a bounded list of cached rows, the baseline that the other families are measured against. The cache has its
// full size from the start, and a token that does not fit is an error (the session refuses it beforehand).
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/ops/attention.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class CacheAttentionOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::CacheAttention& attributes = *context.op().attributes_as_CacheAttention();
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/3, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/2));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *attributes.heads()));
    capacity_ = attributes.capacity();
    scale_ = attributes.scale();
    if (capacity_ < 1 || !std::isfinite(scale_)) {
      return Error(TARN_BAD_FORMAT, "capacity %zu (>= 1 wanted) or scale %g", capacity_, static_cast<double>(scale_));
    }
    const size_t kv_heads = heads_.kv_heads();
    TARN_RETURN_IF_ERROR(context.ExpectState(0, "K", {kv_heads, capacity_, heads_.key_dim()}));
    TARN_RETURN_IF_ERROR(context.ExpectState(1, "V", {kv_heads, capacity_, heads_.value_dim()}));
    context.BoundTokens(capacity_);

    scratch_floats_ = ScratchFloats::Padded(CacheScratch(context.limits().max_tokens, heads_.key_dim()));
    context.RequestScratch(uint64_t{context.limits().threads} * scratch_floats_ * sizeof(float));
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t cost = (context.tokens_seen + context.tokens) * (heads_.key_dim() + heads_.value_dim());
    ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      const HeadSlices at(context, heads_, sequence, kv_head);
      const size_t d = heads_.key_dim();
      const size_t dv = heads_.value_dim();
      const size_t seen = static_cast<size_t>(context.tokens_seen);
      float* keys = context.states[0].f32(sequence) + kv_head * capacity_ * d;
      float* values = context.states[1].f32(sequence) + kv_head * capacity_ * dv;
      for (size_t token = 0; token < context.tokens; ++token) {
        std::memcpy(keys + (seen + token) * d, at.k + token * at.k_stride, d * sizeof(float));
        std::memcpy(values + (seen + token) * dv, at.v + token * at.v_stride, dv * sizeof(float));
      }
      float* scratch = reinterpret_cast<float*>(context.scratch) + thread * scratch_floats_;
      context.kernels->cache_attend({context.tokens, heads_.group(), seen + context.tokens, d, dv, at.q, at.q_stride, keys,
                                     values, scale_, at.o, at.o_stride, scratch});
    });
    return Ok();
  }

 private:
  Heads heads_;
  size_t capacity_;
  float scale_;
  size_t scratch_floats_;  // of one thread
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::CacheAttention& a = *op.attributes_as_CacheAttention();
  std::snprintf(text, text_bytes, "softmax: capacity %u tokens, heads %u/%u x %u/%u", a.capacity(), a.heads()->heads(),
                a.heads()->kv_heads(), a.heads()->head_dim(), a.heads()->value_dim());
}

}  // namespace

const OpKind kCacheAttentionOp = MakeOpKind<CacheAttentionOp>("cache_attention", Describe);

}  // namespace tarn
