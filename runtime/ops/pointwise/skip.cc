// Skip: the values of a token pass by the attention, y = o + c v for each head, by a weight of the head or by its products of q and
// k.
#include "runtime/ops/pointwise/rows.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class SkipOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::Skip& attributes = *context.op().attributes_as_Skip();
    products_ = attributes.products();
    heads_ = attributes.heads();
    TARN_RETURN_IF_ERROR(context.Expect(products_ ? 4 : 2, /*outputs=*/1, /*tensors_least=*/1, /*tensors_most=*/1, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectOneAxis(&axis_));
    width_ = context.output_width(0);
    if (heads_ == 0 || width_ % heads_ != 0) {
      return Error(TARN_BAD_FORMAT, "heads is %u, a divisor of the width %u expected", heads_, width_);
    }
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "o", width_));
    TARN_RETURN_IF_ERROR(context.ExpectInput(1, "v", width_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", width_));
    if (!products_) {
      TARN_ASSIGN_OR_RETURN(weight_, context.ExpectTensor(0, "weight", {heads_}));
      return Ok();
    }
    const uint32_t keys = context.input_width(2);
    if (keys == 0 || keys % heads_ != 0) {
      return Error(TARN_BAD_FORMAT, "q is %u wide, a multiple of %u heads expected", keys, heads_);
    }
    key_dim_ = keys / heads_;
    TARN_RETURN_IF_ERROR(context.ExpectInput(2, "q", keys));
    TARN_RETURN_IF_ERROR(context.ExpectInput(3, "k", keys));
    TARN_ASSIGN_OR_RETURN(weight_, context.ExpectTensor(0, "weight", {heads_, key_dim_}));
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    ForRows(context, context.rows(axis_), width_, [&](size_t first, size_t count) { RunRows(context, first, count); });
    return Ok();
  }

 private:
  void RunRows(const RunContext& context, size_t first, size_t count) const {
    const Operand &o = context.inputs[0], &v = context.inputs[1], &y = context.outputs[0];
    SkipArgs args{count,   heads_, width_ / heads_, key_dim_, o.row(first), o.stride,     v.row(first), v.stride,
                  nullptr, 0,      nullptr,         0,        weight_,      y.row(first), y.stride};
    if (products_) {
      const Operand &q = context.inputs[2], &k = context.inputs[3];
      args.q = q.row(first);
      args.q_stride = q.stride;
      args.k = k.row(first);
      args.k_stride = k.stride;
    }
    context.kernels->skip(args);
  }

  Axis axis_;
  bool products_;
  uint32_t heads_, width_;
  uint32_t key_dim_ = 0;
  const float* weight_ = nullptr;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::Skip& skip = *op.attributes_as_Skip();
  Format(text, text_bytes, "%u heads, by %s", skip.heads(), skip.products() ? "products of q and k" : "weights");
}

}  // namespace

const OpKind kSkipOp = MakeOpKind<SkipOp>("skip", Describe);

}  // namespace tarn
