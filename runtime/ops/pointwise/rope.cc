// Rope: rotates the pairs (i, i + d/2) of every head of x by the angles of the row's position.
#include "runtime/ops/pointwise/rows.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class RopeOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/2, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    const uint32_t width = context.output_width(0);
    head_dim_ = context.input_width(1);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width));
    TARN_RETURN_IF_ERROR(context.ExpectInput(1, "angles", head_dim_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", width));
    if (head_dim_ % 2 != 0 || width % head_dim_ != 0) {
      return Error(TARN_BAD_FORMAT, "width %u is not a multiple of an even head size, angles are %u wide", width, head_dim_);
    }
    if (context.input_stride(1) != head_dim_) return Error(TARN_BAD_FORMAT, "angles: a whole value expected");
    heads_ = width / head_dim_;
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    const float* angles = context.inputs[1].f32();
    ForRows(context, context.token_rows, size_t{heads_} * head_dim_, [&](size_t first, size_t count) {
      context.kernels->rope(count, heads_, head_dim_, x.row(first), x.stride, angles + first * head_dim_, y.row(first), y.stride);
    });
    return Ok();
  }

 private:
  uint32_t head_dim_;
  uint32_t heads_;
};

}  // namespace

const OpKind kRopeOp = MakeOpKind<RopeOp>("rope");

}  // namespace tarn
