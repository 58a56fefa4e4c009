// Cache attention (MATH F3): softmax over an explicit, bounded list of rows. The policy says which rows are kept. All memory is
// there from the start, and where a bound is reached the session refuses the token.
#include <algorithm>

#include "runtime/ops/attention/cache/cache_policy.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

// nullptr: the policy has no causal form.
#define TARN_POLICY(id, ...) (InfoOf(CachePolicy::k##id).forms & kCausalForm) != 0 ? &k##id##Cache : nullptr,
constexpr const CachePolicyKind* kPolicies[] = {TARN_CACHE_POLICIES(TARN_POLICY)};
#undef TARN_POLICY

class CacheAttentionOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    config_ = CacheConfig();
    CacheVariant& variant = config_.variant;
    TARN_ASSIGN_OR_RETURN(variant, CacheVariant::Read(*context.op().attributes_as_CacheAttention(), kCausalForm));
    TARN_RETURN_IF_ERROR(context.ExpectValues(/*inputs=*/variant.attributes.has_conv() ? 5 : 3, /*outputs=*/1));
    TARN_RETURN_IF_ERROR(variant.heads.ExpectOperands(context));
    if (variant.attributes.has_conv()) {
      const uint64_t taps = uint64_t{variant.attributes.compression_ratio} * variant.heads.kv_heads();
      TARN_RETURN_IF_ERROR(context.ExpectInput(3, "k_compress", taps * variant.heads.key_dim()));
      TARN_RETURN_IF_ERROR(context.ExpectInput(4, "v_compress", taps * variant.heads.value_dim()));
    }
    TARN_RETURN_IF_ERROR(variant.ReadTensors(context));
    TARN_RETURN_IF_ERROR(config_.ReadStores(context));
    TARN_RETURN_IF_ERROR(context.ExpectOwned(variant.tensor_count, variant.tensor_count, config_.state_count()));
    if ((variant.info().attributes & reads::capacity) != 0) context.BoundTokens(variant.attributes.capacity);
    policy_ = kPolicies[static_cast<size_t>(variant.policy)];
    policy_->prepare(&config_);
    const Heads& heads = variant.heads;
    for (uint32_t i = 0; i < config_.store_count; ++i) {
      context.AddWork({context.limits().MaxRows({format::Time::Tokens, 0}), heads.heads(), config_.stores[i].rows,
                       heads.key_dim() + heads.value_dim()});
    }
    thread_bytes_ = CacheTask::CountScratch(config_, context.limits().max_chunk);
    context.RequestScratch(context.limits().threads * thread_bytes_);
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t rows = config_.stores[0].rows;
    uint64_t visible = 0;  // to most
    for (const RunSequence& sequence : context.sequences) visible = std::max(visible, std::min(sequence.tokens_seen, rows));
    const Heads& heads = config_.variant.heads;
    const uint64_t cost = (visible + context.tokens) * (heads.key_dim() + heads.value_dim());
    ForEachHead(context, heads, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      CacheTask task(config_, context, sequence, kv_head, ScratchParts(context.scratch, thread_bytes_)[thread]);
      policy_->run(task);
    });
    return Ok();
  }

  uint64_t step_write_bytes() const override {
    if (policy_->find_rows == nullptr) return 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < config_.store_count; ++i) {
      bytes += config_.variant.heads.kv_heads() * RowBytes(config_.stores[i], config_.variant.heads);
    }
    return bytes;
  }

  void FindStepWrites(uint64_t tokens_seen, StateWrites* writes) const override {
    uint64_t rows[kMaxCacheRows];
    for (uint64_t& row : rows) row = kNoRow;
    policy_->find_rows(config_, tokens_seen, rows);
    for (uint32_t i = 0; i < config_.store_count; ++i) {
      if (rows[i] != kNoRow) AddRowWrites(config_.stores[i], config_.variant.heads, rows[i], writes);
    }
  }

 private:
  const CachePolicyKind* policy_;
  CacheConfig config_;
  uint64_t thread_bytes_;  // of scratch
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  DescribeCache(*op.attributes_as_CacheAttention(), kCausalForm, "", text, text_bytes);
}

// The full cache is what the others are compared with.
const format::Heads* HeadsOf(const format::Op& op) {
  const format::CacheAttention& a = *op.attributes_as_CacheAttention();
  return a.policy() == static_cast<uint8_t>(CachePolicy::kFull) ? nullptr : a.heads();
}

}  // namespace

const OpKind kCacheAttentionOp = MakeOpKind<CacheAttentionOp>("cache_attention", Describe, HeadsOf);

}  // namespace tarn
