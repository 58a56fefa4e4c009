#include "runtime/ops/attention/cache/cache_attributes.h"

#include <iterator>

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
    a.last_##name = table.name()->Get(a.num_##name - 1);                      \
  }
#define TARN_CHOICE(type, name, names, fallback)                               \
  if ((wanted & reads::name) != 0) {                                           \
    TARN_RETURN_IF_ERROR(ExpectChoice(#name, table.name(), std::size(names))); \
    a.name = static_cast<type>(table.name());                                  \
  }
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST, TARN_CHOICE)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
#undef TARN_CHOICE
  a.scale = table.scale();
  TARN_RETURN_IF_ERROR(ExpectNumber("scale", a.scale, Bounds::kFinite));
  a.soft_cap = table.soft_cap();
  TARN_RETURN_IF_ERROR(ExpectNumber("soft_cap", a.soft_cap, Bounds::kNotNegative));
  a.bias_behind = table.bias_behind();
  a.bias_ahead = table.bias_ahead();
  TARN_RETURN_IF_ERROR(ExpectAtLeast("bias_behind", a.bias_behind, a.bias_ahead > 0 ? 1 : 0));
  TARN_RETURN_IF_ERROR(ExpectAtLeast("bias_ahead", a.bias_ahead, 0));
  return a;
}

// Slopes of the heads, finite; nullptr: there are none.
Result<const float*> ReadSlopes(const flatbuffers::Vector<float>* slopes, uint32_t heads) {
  if (slopes == nullptr) return static_cast<const float*>(nullptr);
  if (slopes->size() != heads) return Error(TARN_BAD_FORMAT, "bias_slopes: %u numbers, %u expected", slopes->size(), heads);
  for (const float slope : *slopes) TARN_RETURN_IF_ERROR(ExpectNumber("bias_slopes", slope, Bounds::kFinite));
  return slopes->data();
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
  TARN_ASSIGN_OR_RETURN(variant.bias_slopes, ReadSlopes(table.bias_slopes(), table.heads()->heads()));
  if (variant.has_bias() && !HasDistances(variant.policy, variant.attributes, form)) {
    return Error(TARN_BAD_FORMAT, "policy %s has no bias by distance in this form", info.name);
  }
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
  if (attributes.bias_behind == 0) return Ok();
  const uint64_t columns = uint64_t{attributes.bias_behind} + attributes.bias_ahead;
  TARN_ASSIGN_OR_RETURN(bias_table, context.ExpectTensor(tensor_count, "bias_table", {heads.heads(), columns}));
  ++tensor_count;
  return Ok();
}

DistanceBias CacheVariant::BiasOf(size_t kv_head) const {
  const size_t columns = size_t{attributes.bias_behind} + attributes.bias_ahead, first = kv_head * heads.group();
  return {bias_table == nullptr ? nullptr : bias_table + first * columns, columns, attributes.bias_behind,
          bias_slopes == nullptr ? nullptr : bias_slopes + first};
}

void DescribeCache(const format::CacheAttention& table, uint32_t form, const char* part, char* text, size_t text_bytes) {
  const char* name = table.system() == nullptr ? "unnamed" : table.system()->c_str();
  const Result<CacheVariant> read = CacheVariant::Read(table, form);
  if (!read.ok()) {
    Format(text, text_bytes, "%s: %s", name, read.status().message());
    return;
  }
  const CacheVariant& variant = read.value();
  const CacheAttributes &a = variant.attributes, unset;
  size_t used = Format(text, text_bytes, "%s: %s%s%s", name, part, *part == 0 ? "" : ", ", variant.info().name);
#define TARN_SIZE(name, key, fallback, least, most) \
  if (a.name != unset.name) used += Format(text + used, text_bytes - used, ", " #name " %u", a.name);
#define TARN_FLAG(name, fallback) \
  if (a.name != unset.name) used += Format(text + used, text_bytes - used, ", " #name " %s", a.name ? "true" : "false");
#define TARN_LIST(name, key) \
  if (a.num_##name > 0) used += Format(text + used, text_bytes - used, ", %u " #name, a.num_##name);
#define TARN_CHOICE(type, name, names, fallback) \
  if (a.name != unset.name) used += Format(text + used, text_bytes - used, ", " #name " %s", names[static_cast<size_t>(a.name)]);
  TARN_CACHE_ATTRIBUTES(TARN_SIZE, TARN_FLAG, TARN_LIST, TARN_CHOICE)
#undef TARN_SIZE
#undef TARN_FLAG
#undef TARN_LIST
#undef TARN_CHOICE
  if (a.soft_cap > 0) used += Format(text + used, text_bytes - used, ", soft_cap %g", static_cast<double>(a.soft_cap));
  if (variant.has_bias()) used += Format(text + used, text_bytes - used, ", bias by distance");
  const format::Heads& heads = *table.heads();
  Format(text + used, text_bytes - used, ", heads %u/%u x %u/%u", heads.heads(), heads.kv_heads(), heads.head_dim(),
         heads.value_dim());
}

}  // namespace tarn
