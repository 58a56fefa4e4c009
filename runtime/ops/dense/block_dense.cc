// BlockDense: y = x W^T + b with a block-diagonal W in f32: parts of a row, each with a matrix of its own.
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class BlockDenseOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors_least=*/1, /*tensors_most=*/2, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    const uint32_t inputs = context.input_width(0), outputs = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", inputs));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", outputs));
    blocks_ = context.tensor(0).shape.dims[0];
    if (blocks_ == 0 || inputs % blocks_ != 0 || outputs % blocks_ != 0) {
      return Error(TARN_BAD_FORMAT, "weight has %u blocks, a divisor of %u columns of x and %u of y expected", blocks_, inputs,
                   outputs);
    }
    in_ = inputs / blocks_;
    out_ = outputs / blocks_;
    TARN_ASSIGN_OR_RETURN(weight_, context.ExpectTensor(0, "weight", {blocks_, out_, in_}));
    if (context.tensor_count() == 2) {
      TARN_ASSIGN_OR_RETURN(bias_, context.ExpectTensor(1, "bias", {outputs}));
    }
    context.AddWork({context.limits().MaxRows(axis_), outputs, in_});
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const Operand &x = context.inputs[0], &y = context.outputs[0];
    const size_t rows = context.rows(axis_);
    const size_t matrix = size_t{out_} * in_;
    context.threads->ParallelFor(blocks_, rows * matrix * blocks_, [&](size_t block, size_t) {
      const float* const bias = bias_ == nullptr ? nullptr : bias_ + block * out_;
      context.kernels->dense_f32(rows, in_, out_, x.f32() + block * in_, x.stride, weight_ + block * matrix, bias,
                                 y.f32() + block * out_, y.stride);
    });
    return Ok();
  }

 private:
  Axis axis_;
  uint32_t blocks_, in_, out_;
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace

const OpKind kBlockDenseOp = MakeOpKind<BlockDenseOp>("block_dense");

}  // namespace tarn
