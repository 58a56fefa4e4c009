#include "runtime/ops/registry.h"

namespace tarn {
namespace {
class MissingOp final : public Op {
 public:
  Status Prepare(PrepareContext&) override { return Error(TARN_UNSUPPORTED, "not built yet"); }
  Status Run(const RunContext&) override { return Ok(); }
};
}  // namespace
const OpKind kStaticCacheOp = MakeOpKind<MissingOp>("static_cache");
const OpKind kClusteredAttentionOp = MakeOpKind<MissingOp>("clustered_attention");
const OpKind kProbSparseOp = MakeOpKind<MissingOp>("probsparse");
}  // namespace tarn
