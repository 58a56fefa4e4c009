#include "runtime/ops/attention/linear/linear_attributes.h"

#include <iterator>

#include "variants/limits.h"

namespace tarn {
namespace {

Status CheckChoice(const char* name, uint8_t value, size_t count) {
  if (value < count) return Ok();
  return Error(TARN_BAD_FORMAT, "%s is %u, 0 to %zu expected", name, value, count - 1);
}

Status CheckSizes(const LinearAttributes& a) {
  if (a.has_projection() && (a.num_features < 1 || a.num_features > kMaxFeatures)) {
    return Error(TARN_BAD_FORMAT, "num_features is %u, 1 to %u expected", a.num_features, kMaxFeatures);
  }
  if ((a.map().attributes & kReadsNu) != 0 && (a.nu < 1 || a.nu > kMaxNu)) {
    return Error(TARN_BAD_FORMAT, "nu is %u, 1 to %u expected", a.nu, kMaxNu);
  }
  return Ok();
}

Status CheckNumbers(const LinearAttributes& a) {
  for (const auto& number : kLinearNumbers) {
    const float value = a.*number.value;
    if (IsWithin(number.bounds, value)) continue;
    return Error(TARN_BAD_FORMAT, "%s is %g, %s expected", number.name, static_cast<double>(value), TextOf(number.bounds));
  }
  if (IsWithin(Bounds::kPositive, a.q_scale())) return Ok();
  return Error(TARN_BAD_FORMAT, "input_scale * q_input_scale is %g, %s expected", static_cast<double>(a.q_scale()),
               TextOf(Bounds::kPositive));
}

}  // namespace

Result<LinearAttributes> ReadLinearAttributes(const format::LinearState& table) {
  LinearAttributes a;
#define TARN_READ_CHOICE(type, name, list, fallback)                       \
  TARN_RETURN_IF_ERROR(CheckChoice(#name, table.name(), std::size(list))); \
  a.name = static_cast<type>(table.name());
#define TARN_READ(name, ...) a.name = table.name();
#define TARN_READ_FLAG(name) a.name = table.name();
  TARN_LINEAR_ATTRIBUTES(TARN_READ_CHOICE, TARN_READ, TARN_READ, TARN_READ_FLAG)
#undef TARN_READ_CHOICE
#undef TARN_READ
#undef TARN_READ_FLAG
  TARN_RETURN_IF_ERROR(CheckNumbers(a));
  TARN_RETURN_IF_ERROR(CheckSizes(a));
  const char* conflict = a.Conflict();
  if (conflict != nullptr) return Error(TARN_BAD_FORMAT, "%s", conflict);
  return a;
}

void DescribeLinear(const format::LinearState& table, char* text, size_t text_bytes) {
  const char* variant = table.system() == nullptr ? "unnamed" : table.system()->c_str();
  const Result<LinearAttributes> read = ReadLinearAttributes(table);
  if (!read.ok()) {
    Format(text, text_bytes, "%s: %s", variant, read.status().message());
    return;
  }
  const LinearAttributes& a = read.value();
  const format::Heads& heads = *table.heads();
  Format(text, text_bytes, "%s: %s features %u, gate %s, den %s %g, rule %s, heads %u/%u x %u/%u", variant, a.map().name,
         a.num_features, InfoOf(a.gate).name, kDenModeNames[static_cast<size_t>(a.den_mode)], static_cast<double>(a.den_eps),
         InfoOf(a.rule).name, heads.heads(), heads.kv_heads(), heads.head_dim(), heads.value_dim());
}

}  // namespace tarn
