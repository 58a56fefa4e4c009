// SiluMul: y = silu(gate) * up, the middle of a SwiGLU MLP.
#include "runtime/ops/pointwise/binary.h"
#include "runtime/ops/registry.h"

namespace tarn {

const OpKind kSiluMulOp = MakeOpKind<BinaryOp<&Kernels::silu_mul>>("silu_mul");

}  // namespace tarn
