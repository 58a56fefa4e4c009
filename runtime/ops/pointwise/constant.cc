// Constant: the rows of a tensor, the same for every sequence: inducing points, seeds, packs.
#include <cstring>

#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class ConstantOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/0, /*outputs=*/1, /*tensors=*/1, 1, /*states=*/0));
    axis_ = context.output_axis(0);
    width_ = context.output_width(0);
    if (axis_.time != format::Time::Fixed) return Error(TARN_BAD_FORMAT, "writes a fixed number of rows, its value has others");
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "rows", width_));
    TARN_ASSIGN_OR_RETURN(rows_, context.ExpectTensor(0, "rows", {axis_.fixed_rows, width_}));
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const size_t elements = context.sequence_rows(axis_) * width_;
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      std::memcpy(context.outputs[0].f32() + sequence * elements, rows_, elements * sizeof(float));
    }
    return Ok();
  }

 private:
  Axis axis_;
  uint32_t width_;
  const float* rows_ = nullptr;
};

}  // namespace

const OpKind kConstantOp = MakeOpKind<ConstantOp>("constant");

}  // namespace tarn
