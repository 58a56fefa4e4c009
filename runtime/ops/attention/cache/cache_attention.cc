// Cache attention (MATH F3): softmax over an explicit, bounded list of rows. The policy says which rows are kept. All memory is
// there from the start, and where a bound is reached the session refuses the token.
#include <cmath>

#include "runtime/ops/attention/cache/cache_policy.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

// In the order of CachePolicy in schema/tarn.fbs.
constexpr const CachePolicyKind* kPolicies[] = {&kFullCache, &kWindowCache,      &kStridedCache,
                                                &kL2gCache,  &kCompressiveCache, &kMemoryCompressedCache};
static_assert(sizeof(kPolicies) / sizeof(kPolicies[0]) == static_cast<size_t>(format::CachePolicy::Pooled));

class CacheAttentionOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::CacheAttention& table = *context.op().attributes_as_CacheAttention();
    if (table.policy() >= format::CachePolicy::Pooled) {
      return Error(TARN_BAD_FORMAT, "unknown policy %u", static_cast<unsigned>(table.policy()));
    }
    if (!std::isfinite(table.scale())) return Error(TARN_BAD_FORMAT, "scale is %g", static_cast<double>(table.scale()));
    policy_ = kPolicies[static_cast<size_t>(table.policy())];
    config_ = CacheConfig();
    config_.attributes = &table;
    TARN_RETURN_IF_ERROR(context.ExpectValues(/*inputs=*/3, /*outputs=*/1));
    TARN_ASSIGN_OR_RETURN(config_.heads, Heads::Read(context, *table.heads()));
    TARN_RETURN_IF_ERROR(policy_->prepare(context, &config_));
    TARN_RETURN_IF_ERROR(context.ExpectOwned(config_.tensor_count, config_.tensor_count, config_.state_count()));
    for (uint32_t i = 0; i < config_.store_count; ++i) {
      context.AddWork({context.limits().MaxRows({format::Time::Tokens, 0}), config_.heads.heads(), config_.stores[i].rows,
                       config_.heads.key_dim() + config_.heads.value_dim()});
    }
    thread_bytes_ = CacheTask::CountScratch(config_, context.limits().max_tokens);
    context.RequestScratch(context.limits().threads * thread_bytes_);
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t rows = config_.stores[0].rows;
    const uint64_t visible = context.tokens_seen < rows ? context.tokens_seen : rows;
    const uint64_t cost = (visible + context.tokens) * (config_.heads.key_dim() + config_.heads.value_dim());
    ForEachHead(context, config_.heads, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      CacheTask task(config_, context, sequence, kv_head, ScratchParts(context.scratch, thread_bytes_)[thread]);
      policy_->run(task);
    });
    return Ok();
  }

 private:
  const CachePolicyKind* policy_;
  CacheConfig config_;
  uint64_t thread_bytes_;  // of scratch
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::CacheAttention& a = *op.attributes_as_CacheAttention();
  Format(text, text_bytes, "%s: %s, heads %u/%u x %u/%u", a.system() == nullptr ? "unnamed" : a.system()->c_str(),
         format::EnumNameCachePolicy(a.policy()), a.heads()->heads(), a.heads()->kv_heads(), a.heads()->head_dim(),
         a.heads()->value_dim());
}

// The full cache is what the others are compared with.
const format::Heads* HeadsOf(const format::Op& op) {
  const format::CacheAttention& a = *op.attributes_as_CacheAttention();
  return a.policy() == format::CachePolicy::Full ? nullptr : a.heads();
}

}  // namespace

const OpKind kCacheAttentionOp = MakeOpKind<CacheAttentionOp>("cache_attention", Describe, HeadsOf);

}  // namespace tarn
