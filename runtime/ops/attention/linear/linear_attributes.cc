#include "runtime/ops/attention/linear/linear_attributes.h"

#include <iterator>

#include "runtime/ops/attention/attributes.h"

namespace tarn {
namespace {

Status CheckSizes(const LinearAttributes& a) {
  if (a.has_projection()) TARN_RETURN_IF_ERROR(ExpectAtLeast("num_features", a.num_features, 1, kMaxFeatures));
  return (a.map().attributes & kReadsNu) != 0 ? ExpectAtLeast("nu", a.nu, 1, kMaxNu) : Ok();
}

}  // namespace

Result<LinearAttributes> ReadLinearAttributes(const format::LinearState& table) {
  LinearAttributes a;
#define TARN_READ_CHOICE(type, name, list, fallback)                        \
  TARN_RETURN_IF_ERROR(ExpectChoice(#name, table.name(), std::size(list))); \
  a.name = static_cast<type>(table.name());
#define TARN_READ(name, ...) a.name = table.name();
#define TARN_READ_FLAG(name) a.name = table.name();
  TARN_LINEAR_ATTRIBUTES(TARN_READ_CHOICE, TARN_READ, TARN_READ, TARN_READ_FLAG)
#undef TARN_READ_CHOICE
#undef TARN_READ
#undef TARN_READ_FLAG
  TARN_RETURN_IF_ERROR(ExpectNumbers(a, kLinearNumbers));
  TARN_RETURN_IF_ERROR(ExpectNumber("input_scale * q_input_scale", a.q_scale(), Bounds::kPositive));
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
  Format(text, text_bytes, "%s: %s features %llu, gate %s, den %s %g, rule %s, heads %u/%u x %u/%u", variant, a.map().name,
         static_cast<unsigned long long>(a.Features(heads.head_dim())), InfoOf(a.gate).name,
         kDenModeNames[static_cast<size_t>(a.den_mode)], static_cast<double>(a.den_eps), InfoOf(a.rule).name, heads.heads(),
         heads.kv_heads(), heads.head_dim(), heads.value_dim());
}

}  // namespace tarn
