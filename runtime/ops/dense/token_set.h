// The state of a Shortlist: a bit for each token of the vocabulary.
#ifndef TARN_RUNTIME_OPS_DENSE_TOKEN_SET_H_
#define TARN_RUNTIME_OPS_DENSE_TOKEN_SET_H_

#include "runtime/ops/op.h"

namespace tarn {

constexpr size_t TokenSetBytes(uint32_t vocab) { return (size_t{vocab} + 7) / 8; }

// State 0 of the op, of a source.
inline Status ExpectTokenSet(const PrepareContext& context, uint32_t vocab) {
  TARN_ASSIGN_OR_RETURN(const DType stored, context.ExpectTypedSourceState(0, "set", {TokenSetBytes(vocab)}));
  return stored == DType::kI8 ? Ok() : Error(TARN_BAD_FORMAT, "set is %s, i8 expected", DTypeName(stored));
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_DENSE_TOKEN_SET_H_
