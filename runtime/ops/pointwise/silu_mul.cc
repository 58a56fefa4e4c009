// SiluMul: y = f(gate) * up, the middle of a gated MLP or a gate of outputs; f is silu, gelu, gelu with tanh, sigmoid or the
// identity.
#include "runtime/ops/pointwise/binary.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class SiluMulOp final : public BinaryOp {
 public:
  Status Prepare(PrepareContext& context) override {
    kind_ = context.op().attributes_as_SiluMul()->kind();
    if (KernelOf(context.kernels()) != nullptr) return BinaryOp::Prepare(context);
    return Error(TARN_BAD_FORMAT, "gate of kind %u, %u (Silu), %u (Gelu), %u (GeluTanh), %u (Sigmoid) or %u (Linear) expected",
                 static_cast<unsigned>(kind_), static_cast<unsigned>(format::ActivationKind::Silu),
                 static_cast<unsigned>(format::ActivationKind::Gelu), static_cast<unsigned>(format::ActivationKind::GeluTanh),
                 static_cast<unsigned>(format::ActivationKind::Sigmoid), static_cast<unsigned>(format::ActivationKind::Linear));
  }

 private:
  BinaryKernel KernelOf(const Kernels& kernels) const override {
    if (kind_ == format::ActivationKind::Silu) return kernels.silu_mul;
    if (kind_ == format::ActivationKind::Gelu) return kernels.gelu_mul;
    if (kind_ == format::ActivationKind::Sigmoid) return kernels.sigmoid_mul;
    if (kind_ == format::ActivationKind::Linear) return kernels.mul;
    return kind_ == format::ActivationKind::GeluTanh ? kernels.gelu_tanh_mul : nullptr;
  }

  format::ActivationKind kind_;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  Format(text, text_bytes, "%s", format::EnumNameActivationKind(op.attributes_as_SiluMul()->kind()));
}

}  // namespace

const OpKind kSiluMulOp = MakeOpKind<SiluMulOp>("silu_mul", Describe);

}  // namespace tarn
