// The table of ops: one line per member of the schema's union.
#ifndef TARN_RUNTIME_OPS_REGISTRY_H_
#define TARN_RUNTIME_OPS_REGISTRY_H_

#include "runtime/ops/op.h"

namespace tarn {

// In the order of OpAttributes in schema/tarn.fbs; each is defined in the file of its name.
#define TARN_OP_TABLE(X) \
  X(Embedding)           \
  X(FullyConnected)      \
  X(Norm)                \
  X(Activation)          \
  X(SiluMul)             \
  X(Add)                 \
  X(SelectOutputs)       \
  X(AddSinusoid)         \
  X(AddLearnedPosition)  \
  X(RopeAngles)          \
  X(Rope)                \
  X(LinearState)         \
  X(SlotMemory)          \
  X(CacheAttention)      \
  X(RandomSlots)         \
  X(NoncausalLinear)     \
  X(NoncausalSlots)      \
  X(NoncausalCache)      \
  X(ClusteredAttention)  \
  X(ProbSparse)          \
  X(Constant)            \
  X(Pool)                \
  X(CausalConv)          \
  X(DiagonalRecurrence)  \
  X(BlockDense)          \
  X(Skip)                \
  X(Blend)               \
  X(Shortlist)           \
  X(DenseShortlist)

#define TARN_DECLARE_OP(name) extern const OpKind k##name##Op;
TARN_OP_TABLE(TARN_DECLARE_OP)
#undef TARN_DECLARE_OP

// `type` was validated: it is a known member and not NONE. nullptr: this build leaves the op out (TARN_OPS of CMake).
const OpKind* FindOpKind(format::OpAttributes type);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_REGISTRY_H_
