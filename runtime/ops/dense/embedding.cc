// Embedding: x = scale * table[id], table [V, E] in f32, f16, int8 with a scale per row, or int4, int3 or int2 with
// a scale per block of a row.
#include "core/planes.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class EmbeddingOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/1, 1, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "ids", 1, format::DType::I32));
    if (!context.is_program_input(0)) return Error(TARN_BAD_FORMAT, "ids: token ids from the caller expected, not an op's result");
    table_ = context.tensor(0);
    const bool readable =
        table_.dtype == DType::kF32 || table_.dtype == DType::kF16 || table_.dtype == DType::kI8 || IsBlockwise(table_.dtype);
    if (!readable || table_.shape.rank != 2) {
      return Error(TARN_BAD_FORMAT, "table '%s': f32, f16, i8, i4, i3 or i2 of 2 dimensions expected", table_.name);
    }
    if (table_.shape.dims[0] != context.vocab_size()) {
      return Error(TARN_BAD_FORMAT, "table '%s' has %u rows, vocab_size is %u", table_.name, table_.shape.dims[0],
                   context.vocab_size());
    }
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "x", table_.shape.dims[1]));
    scale_ = context.op().attributes_as_Embedding()->scale();
    return Ok();
  }

  bool runs_by_rows() const override { return true; }

  Status Run(const RunContext& context) override {
    const size_t width = table_.shape.dims[1];
    const Kernels& kernels = *context.kernels;
    for (size_t row = 0; row < context.token_rows; ++row) {
      // The session refuses ids outside the vocabulary.
      const size_t id = static_cast<size_t>(context.inputs[0].i32()[row * context.inputs[0].stride]);
      float* x = context.outputs[0].f32() + row * context.outputs[0].stride;
      switch (table_.dtype) {
        case DType::kF32:
          kernels.scale_f32(width, reinterpret_cast<const float*>(table_.data) + id * width, scale_, x);
          break;
        case DType::kF16:
          kernels.scale_f16(width, reinterpret_cast<const uint16_t*>(table_.data) + id * width, scale_, x);
          break;
        case DType::kI4:
          kernels.scale_i4(width, table_.data + id * (width / 2), table_.block_scales + id * (width / kScaleBlock), scale_, x);
          break;
        case DType::kI3:
        case DType::kI2: {
          const uint32_t bits = DTypeBits(table_.dtype);
          const uint8_t* planes = table_.data + id * PlaneRowBytes(bits, width);
          kernels.scale_planes(bits, width, planes, table_.block_scales + id * (width / kScaleBlock), scale_, x);
          break;
        }
        default:
          kernels.scale_i8(width, reinterpret_cast<const int8_t*>(table_.data) + id * width, scale_ * table_.scales[id], x);
      }
    }
    return Ok();
  }

 private:
  TensorView table_;
  float scale_;
};

}  // namespace

const OpKind kEmbeddingOp = MakeOpKind<EmbeddingOp>("embedding");

}  // namespace tarn
