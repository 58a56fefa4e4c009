// Add: y = a + b, a residual connection.
#include "runtime/ops/pointwise/binary.h"
#include "runtime/ops/registry.h"

namespace tarn {

const OpKind kAddOp = MakeOpKind<BinaryOp<&Kernels::add>>("add");

}  // namespace tarn
