// Ops of two values of one shape: y = f(a, b), elementwise.
#ifndef TARN_RUNTIME_OPS_POINTWISE_BINARY_H_
#define TARN_RUNTIME_OPS_POINTWISE_BINARY_H_

#include "runtime/ops/pointwise/rows.h"

namespace tarn {

using BinaryKernel = void (*)(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y,
                              size_t y_stride);

class BinaryOp : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/2, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "first operand", width_));
    TARN_RETURN_IF_ERROR(context.ExpectInput(1, "second operand", width_));
    return context.ExpectOutput(0, "result", width_);
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const Operand& a = context.inputs[0];
    const Operand& b = context.inputs[1];
    const Operand& y = context.outputs[0];
    const BinaryKernel kernel = KernelOf(*context.kernels);
    ForRows(context, context.rows(axis_), width_, [&](size_t first, size_t count) {
      kernel(count, width_, a.row(first), a.stride, b.row(first), b.stride, y.row(first), y.stride);
    });
    return Ok();
  }

 protected:
  ~BinaryOp() = default;

 private:
  virtual BinaryKernel KernelOf(const Kernels& kernels) const = 0;

  Axis axis_;
  uint32_t width_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_POINTWISE_BINARY_H_
