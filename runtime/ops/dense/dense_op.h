// What ops that compute y = x W^T + b have in common: W [out, in] in f32, f16, int8 with a scale per output channel, or int4, int3
// or int2 with a scale per block of inputs.
#ifndef TARN_RUNTIME_OPS_DENSE_DENSE_OP_H_
#define TARN_RUNTIME_OPS_DENSE_DENSE_OP_H_

#include "runtime/ops/op.h"
#include "variants/limits.h"

namespace tarn {

// Self has Status Take(PrepareContext&, const DenseSpec&), which prepares the rest.
template <typename Self, uint32_t kStates>
class DenseOp : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/1, 2, kStates));
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
    return static_cast<Self*>(this)->Take(context, spec);
  }

 protected:
  ~DenseOp() = default;
  Axis axis_;

 private:
  static bool ReadType(DType dtype, DenseWeights* type) {
    constexpr uint8_t kNone = 0xFF;
    constexpr auto number = [](DenseWeights weights) { return static_cast<uint8_t>(weights); };
    // In the order of DType.
    constexpr uint8_t kTypes[] = {number(DenseWeights::kF32),
                                  number(DenseWeights::kF16),
                                  number(DenseWeights::kQC8W),
                                  kNone,
                                  kNone,
                                  number(DenseWeights::kQB4W),
                                  kNone,
                                  number(DenseWeights::kQB3W),
                                  number(DenseWeights::kQB2W)};
    static_assert(sizeof(kTypes) == static_cast<size_t>(DType::kI2) + 1);
    const uint8_t found = kTypes[static_cast<size_t>(dtype)];
    *type = static_cast<DenseWeights>(found);
    return found != kNone;
  }
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_DENSE_DENSE_OP_H_
