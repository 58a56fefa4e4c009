// Add: y = a + b, a residual connection.
#include "runtime/ops/pointwise/binary.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class AddOp final : public BinaryOp {
  BinaryKernel KernelOf(const Kernels& kernels) const override { return kernels.add; }
};

}  // namespace

const OpKind kAddOp = MakeOpKind<AddOp>("add");

}  // namespace tarn
