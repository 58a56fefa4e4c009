#include "runtime/ops/attention/cache/cache_attributes.h"

#include "runtime/ops/attention/attributes.h"

namespace tarn {
namespace {

// The attributes that are in the set `wanted`; the others keep their defaults.
Result<CacheAttributes> ReadAttributes(const format::CacheAttention& table, uint32_t wanted) {
  CacheAttributes a;
#define TARN_SIZE(name, key, fallback, least, most)                                  \
  if ((wanted & reads::name) != 0) {                                                 \
    TARN_RETURN_IF_ERROR(ExpectAtLeast(#name, table.name(), least, uint64_t{most})); \
    a.name = table.name();                                                           \
  }
#define TARN_FLAG(name, fallback) \
  if ((wanted & reads::name) != 0) a.name = table.name();
#define TARN_LIST(name, key)                                                  \
  if ((wanted & reads::name) != 0) {                                          \
    TARN_RETURN_IF_ERROR(ExpectAscending(#name, table.name(), 1, kMaxSlots)); \
    a.num_##name = table.name()->size();                                      \
  }
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
  a.scale = table.scale();
  TARN_RETURN_IF_ERROR(ExpectNumber("scale", a.scale, Bounds::kFinite));
  a.soft_cap = table.soft_cap();
  TARN_RETURN_IF_ERROR(ExpectNumber("soft_cap", a.soft_cap, Bounds::kNotNegative));
  return a;
}

}  // namespace

Result<CacheVariant> CacheVariant::Read(const format::CacheAttention& table, uint32_t form) {
  TARN_RETURN_IF_ERROR(ExpectChoice("policy", table.policy(), kCachePolicyCount));
  CacheVariant variant;
  variant.policy = static_cast<CachePolicy>(table.policy());
  const CachePolicyInfo& info = variant.info();
  if ((info.forms & form) == 0) return Error(TARN_BAD_FORMAT, "policy %s has no such form", info.name);
  TARN_ASSIGN_OR_RETURN(variant.attributes, ReadAttributes(table, info.AttributesOf(form)));
  variant.positions = table.positions();
  TARN_ASSIGN_OR_RETURN(variant.heads, Heads::Of(*table.heads()));
  const char* conflict = info.conflict == nullptr ? nullptr : info.conflict(variant.attributes, variant.heads.sizes());
  if (conflict != nullptr) return Error(TARN_BAD_FORMAT, "%s", conflict);
  return variant;
}

Status CacheVariant::ReadTensors(const PrepareContext& context) {
  for (uint32_t i = 0; i < kMaxCacheTensors && info().tensors[i].name != nullptr; ++i) {
    const TensorShape shape = info().tensors[i].shape(attributes, heads.sizes());
    if (shape.rank == 0) continue;
    TARN_ASSIGN_OR_RETURN(tensors[i], context.ExpectTensor(tensor_count, info().tensors[i].name, shape));
    ++tensor_count;
  }
  return Ok();
}

const char* NameOfCachePolicy(uint8_t policy) { return policy < kCachePolicyCount ? kCachePolicies[policy].name : "unknown"; }

}  // namespace tarn
