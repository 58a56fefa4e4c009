#include "runtime/ops/registry.h"

#include "core/linked_ops.h"

namespace tarn {
namespace {

constexpr bool NamesAreKnown() {
  bool all_known = true;
  ForEachLinkedOp([&](std::string_view name) {
    bool known = false;
#define TARN_OP_COMPARE(op) known = known || name == #op;
    TARN_OP_TABLE(TARN_OP_COMPARE)
#undef TARN_OP_COMPARE
    all_known = all_known && known;
  });
  return all_known;
}
static_assert(NamesAreKnown(), "TARN_OPS names an op that TARN_OP_TABLE lacks");

#define TARN_OP_ADDRESS(name) IsLinked(#name) ? &k##name##Op : nullptr,
constexpr const OpKind* kOps[] = {TARN_OP_TABLE(TARN_OP_ADDRESS)};
#undef TARN_OP_ADDRESS

// The table follows the schema: same members, same order.
#define TARN_OP_NUMBER(name) format::OpAttributes::name,
constexpr format::OpAttributes kNumbers[] = {TARN_OP_TABLE(TARN_OP_NUMBER)};
#undef TARN_OP_NUMBER

constexpr bool NumbersCountUp() {
  for (size_t i = 0; i < sizeof(kNumbers) / sizeof(kNumbers[0]); ++i) {
    if (static_cast<size_t>(kNumbers[i]) != i + 1) return false;
  }
  return true;
}
static_assert(NumbersCountUp(), "TARN_OP_TABLE is not in the order of OpAttributes");
static_assert(sizeof(kNumbers) / sizeof(kNumbers[0]) == static_cast<size_t>(format::OpAttributes::MAX),
              "TARN_OP_TABLE lacks a member of OpAttributes");

}  // namespace

const OpKind* FindOpKind(format::OpAttributes type) { return kOps[static_cast<size_t>(type) - 1]; }

}  // namespace tarn
