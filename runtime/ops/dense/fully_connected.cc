// FullyConnected: y = x W^T + b through the dense seam.
#include "runtime/ops/dense/dense_op.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class FullyConnectedOp final : public DenseOp<FullyConnectedOp, /*kStates=*/0> {
 public:
  Status Take(PrepareContext& context, const DenseSpec& spec) {
    weights_ = uint64_t{spec.inputs} * spec.outputs;
    context.RequestDense(spec);
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const size_t rows = context.rows(axis_);
    return context.dense_backend->run(context.dense, rows, context.inputs[0].f32(), context.outputs[0].f32(),
                                      context.scratch.data(), context.threads->For(rows * weights_));
  }

 private:
  uint64_t weights_;
};

}  // namespace

const OpKind kFullyConnectedOp = MakeOpKind<FullyConnectedOp>("fully_connected");

}  // namespace tarn
