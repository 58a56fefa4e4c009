#include "runtime/ops/registry.h"

namespace tarn {
namespace {
class MissingOp final : public Op {
 public:
  Status Prepare(PrepareContext&) override { return Error(TARN_UNSUPPORTED, "not built yet"); }
  Status Run(const RunContext&) override { return Ok(); }
};
}  // namespace
const OpKind kStaticLinearOp = MakeOpKind<MissingOp>("static_linear");
const OpKind kStaticSlotsOp = MakeOpKind<MissingOp>("static_slots");
}  // namespace tarn
