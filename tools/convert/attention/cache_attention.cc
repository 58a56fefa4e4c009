#include "tools/convert/attention/cache_attention.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

HeadSizes SizesOf(const format::Heads& heads) { return {heads.kv_heads(), heads.head_dim(), heads.value_dim()}; }

// Fields in the order of the schema, so that files stay what they are.
Offset<format::CacheAttention> Attributes(FlatBufferBuilder* builder, const CacheAttention& cache, const format::Heads& heads,
                                          const std::string& system) {
  const auto name = builder->CreateString(system);
  const auto positions = cache.positions.empty() ? 0 : builder->CreateVector(cache.positions);
  const auto slopes = cache.distance_slopes.empty() ? 0 : builder->CreateVector(cache.distance_slopes);
  return format::CreateCacheAttention(
      *builder, &heads, cache.capacity, cache.scale, static_cast<uint8_t>(cache.policy), cache.window, cache.dilation, cache.stride,
      cache.num_strided, positions, cache.mask_empty, cache.segment_len, cache.mem_len, cache.cmem_len, cache.compression_ratio,
      cache.factor, cache.null_kv, name, cache.pool_kernel, cache.pool_stride, cache.soft_cap, cache.bias_behind, cache.bias_ahead,
      slopes, cache.global_full, static_cast<uint8_t>(cache.compression), static_cast<uint8_t>(cache.pad));
}

AttentionOp MakeCausal(const CacheAttention& cache, const format::Heads& heads, const std::string& system) {
  AttentionOp op;
  op.type = format::OpAttributes::CacheAttention;
  op.attributes = [=](FlatBufferBuilder& builder) { return Attributes(&builder, cache, heads, system).Union(); };
  for (const CacheRows& kept : InfoOf(cache.policy).rows) {
    if (kept.rows == nullptr) break;
    const auto rows = static_cast<uint32_t>(kept.rows(cache));
    if (rows == 0) continue;
    const std::string prefix = kept.prefix;
    op.states.push_back({prefix + "K", {heads.kv_heads(), rows, heads.head_dim()}});
    op.states.push_back({prefix + "V", {heads.kv_heads(), rows, heads.value_dim()}});
    if (kept.f32) continue;
    op.num_sized_states = static_cast<uint32_t>(op.states.size());
    op.scales.push_back({op.num_sized_states - 1, {prefix + "scales", {heads.kv_heads(), 2, rows}}});
  }
  op.state_kind = StateKind::kRows;
  return op;
}

// Whole sequences leave no state, sources their rows.
AttentionOp MakeNoncausal(const CacheAttention& cache, const AttentionContext& context, const std::string& system) {
  AttentionOp op;
  const format::Heads heads = context.heads;
  const auto part = [=](format::NoncausalPart which) -> AttributeWriter {
    return [=](FlatBufferBuilder& builder) {
      const auto rows = Attributes(&builder, cache, heads, system);
      return format::CreateNoncausalCache(builder, which, rows).Union();
    };
  };
  SetNoncausalOp(context.form, format::OpAttributes::NoncausalCache, part, &op);
  if (context.form == AttentionForm::kNoncausal) return op;
  op.states.push_back(SourceState("K", {heads.kv_heads(), 1, heads.head_dim()}, 1));
  op.states.push_back(SourceState("V", {heads.kv_heads(), 1, heads.value_dim()}, 1));
  op.num_sized_states = 2;
  op.scales = {{1, SourceState("scales", {heads.kv_heads(), 2, 1}, 2)}};
  return op;
}

// Errors: what the policy would have to keep is more than a dimension may be.
void CheckRows(const Fields& fields, const CacheAttention& cache) {
  for (const CacheRows& kept : InfoOf(cache.policy).rows) {
    if (kept.rows == nullptr) break;
    const uint64_t rows = kept.rows(cache);
    if (rows > Fields::kMaxSize) {
      Fail(fields.where(), ": ", rows, " rows in a cache are too many, at most ", Fields::kMaxSize, " expected");
    }
  }
}

// The policy's tensors, each from one of the checkpoint with the same name and shape.
void AddTensors(const Fields& fields, const CacheAttention& cache, const AttentionContext& context, AttentionOp* op) {
  for (const CacheTensor& tensor : InfoOf(cache.policy).tensors) {
    if (tensor.name == nullptr) break;
    const TensorShape wanted = tensor.shape(cache, SizesOf(context.heads));
    if (wanted.rank == 0) continue;
    std::vector<uint32_t> shape;
    for (uint32_t i = 0; i < wanted.rank; ++i) {
      if (wanted.sizes[i] > Fields::kMaxSize) {
        Fail(fields.where(), ": ", tensor.name, " has a dimension of ", wanted.sizes[i], ", at most ", Fields::kMaxSize,
             " expected");
      }
      shape.push_back(static_cast<uint32_t>(wanted.sizes[i]));
    }
    op->tensors.push_back({tensor.name, shape, {{tensor.name, shape, Init::kLinear}}, nullptr});
  }
}

}  // namespace

void ParseLogits(Fields* fields, const AttentionContext& context, CacheAttention* cache) {
  cache->scale = fields->Number("scale", DefaultScale(context.heads));
  cache->soft_cap = fields->NonNegativeNumber("soft_cap", 0.0f);
}

CacheAttention ParseCachePolicy(Fields* fields, const AttentionContext& context, CachePolicy policy) {
  const CachePolicyInfo& info = InfoOf(policy);
  const uint32_t wanted = info.AttributesOf(FormBit(context.form));
  CacheAttention cache;
  cache.policy = policy;
#define TARN_SIZE(name, key, fallback, least, most)                                                            \
  if ((wanted & reads::name) != 0) {                                                                           \
    const std::optional<uint64_t> absent = fallback == 0 ? std::nullopt : std::optional<uint64_t>(fallback);   \
    cache.name = static_cast<uint32_t>(fields->Integer(key, least, std::min(most, Fields::kMaxSize), absent)); \
  }
#define TARN_FLAG(name, fallback) \
  if ((wanted & reads::name) != 0) cache.name = fields->Bool(#name, fallback);
#define TARN_LIST(name, key)                                                              \
  if ((wanted & reads::name) != 0) {                                                      \
    cache.name = fields->Ascending(key, std::numeric_limits<uint32_t>::max(), kMaxSlots); \
    cache.num_##name = static_cast<uint32_t>(cache.name.size());                          \
    cache.last_##name = cache.name.back();                                                \
  }
#define TARN_CHOICE(type, name, names, fallback) \
  if ((wanted & reads::name) != 0) cache.name = fields->OneOf<type>(#name, names, type::fallback);
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST, TARN_CHOICE)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
#undef TARN_CHOICE
  if ((wanted & reads::positions) != 0 && context.form == AttentionForm::kNoncausal) {
    cache.global_projections = fields->Bool("global_projections", false);
  }
  ParseLogits(fields, context, &cache);
  ParseDistanceBias(fields, context, &cache);
  CheckRows(*fields, cache);
  const char* conflict = info.conflict == nullptr ? nullptr : info.conflict(cache, SizesOf(context.heads));
  if (conflict != nullptr) Fail(fields->where(), ": ", conflict);
  return cache;
}

AttentionOp MakeCacheAttention(const CacheAttention& cache, const AttentionContext& context, const std::string& system) {
  AttentionOp op =
      context.form == AttentionForm::kCausal ? MakeCausal(cache, context.heads, system) : MakeNoncausal(cache, context, system);
  op.reads_global = cache.global_projections;
  const bool whole_rows = context.form == AttentionForm::kNoncausal && !cache.positions.empty();
  if (cache.global_full || whole_rows) op.features.push_back("global_rows");
  if (cache.soft_cap > 0) op.features.push_back("soft_cap");
  if (cache.bias_behind > 0) op.tensors.push_back(DistanceTable(cache, context));
  if (cache.bias_behind > 0 || !cache.distance_slopes.empty()) op.features.push_back("distance_bias");
  return op;
}

void CheckPools(Fields* fields, uint32_t pool_kernel, uint32_t pool_stride) {
  if (pool_stride <= pool_kernel) return;
  fields->FailAt("pool_stride", std::to_string(pool_stride) + " is above pool_kernel = " + std::to_string(pool_kernel) +
                                    ": tokens between two pools would be lost");
}

// Any policy of variants/: what a paper without a name of its own here is converted as.
AttentionOp ParseCacheAttention(Fields* fields, const AttentionContext& context) {
  const auto policy = fields->OneOfList<CachePolicy>("policy", kCachePolicies);
  const uint32_t form = FormBit(context.form), forms = InfoOf(policy).forms;
  if ((forms & form) == 0) {
    fields->FailAt("policy", std::string(InfoOf(policy).name) + " has no " + FormsText(form) + " form, only: " + FormsText(forms));
  }
  const CacheAttention cache = ParseCachePolicy(fields, context, policy);
  if (policy == CachePolicy::kCompressive) CheckCompression(fields, context, cache, "policy");
  if (policy == CachePolicy::kPooled) CheckPools(fields, cache.pool_kernel, cache.pool_stride);
  AttentionOp op = MakeCacheAttention(cache, context, "cache_attention");
  if (policy == CachePolicy::kCompressive) {
    AddCompression(cache, context, &op);
  } else {
    AddTensors(*fields, cache, context, &op);
  }
  return op;
}

}  // namespace tarn::convert
