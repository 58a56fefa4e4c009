// FullyConnected: y = x W^T + b through the dense seam; W [out, in] in f32, f16, int8 with a scale per output channel, or int4,
// int3 or int2 with a scale per block of inputs.
#include "runtime/ops/registry.h"
#include "variants/limits.h"

namespace tarn {
namespace {

class FullyConnectedOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/1, 2, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    const uint32_t inputs = context.input_width(0);
    const uint32_t outputs = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", inputs));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", outputs));
    const TensorView weight = context.tensor(0);
    DenseSpec spec{};
    if (!ReadType(weight.dtype, &spec.type) || !weight.shape.Is({outputs, inputs})) {
      return Error(TARN_BAD_FORMAT, "weight '%s': f32, f16, i8, i4, i3 or i2 [%u, %u] expected", weight.name, outputs, inputs);
    }
    if (IsQuantized(spec.type) && inputs > kMaxInt8Inputs) {
      return Error(TARN_UNSUPPORTED, "weight '%s': %u inputs, at most %u fit the sums of int8 products", weight.name, inputs,
                   kMaxInt8Inputs);
    }
    spec.inputs = inputs;
    spec.outputs = outputs;
    spec.weight = weight.data;
    spec.scales = weight.scales;
    spec.block_scales = weight.block_scales;
    spec.in_place = context.is_embedding_table(0);
    if (context.tensor_count() == 2) {
      TARN_ASSIGN_OR_RETURN(spec.bias, context.ExpectTensor(1, "bias", {outputs}));
    }
    spec.x_stride = context.input_stride(0);
    spec.y_stride = outputs;
    spec.max_rows = context.limits().MaxRows(axis_);
    spec.kernels = &context.kernels();
    weights_ = uint64_t{inputs} * outputs;
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
  static bool ReadType(DType dtype, DenseWeights* type) {
    switch (dtype) {
      case DType::kF32:
        *type = DenseWeights::kF32;
        return true;
      case DType::kF16:
        *type = DenseWeights::kF16;
        return true;
      case DType::kI8:
        *type = DenseWeights::kQC8W;
        return true;
      case DType::kI4:
        *type = DenseWeights::kQB4W;
        return true;
      case DType::kI3:
        *type = DenseWeights::kQB3W;
        return true;
      case DType::kI2:
        *type = DenseWeights::kQB2W;
        return true;
      default:
        return false;
    }
  }

  Axis axis_;
  uint64_t weights_;
};

}  // namespace

const OpKind kFullyConnectedOp = MakeOpKind<FullyConnectedOp>("fully_connected");

}  // namespace tarn
