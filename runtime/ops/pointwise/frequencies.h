// Angles per position that a model file gives.
#ifndef TARN_RUNTIME_OPS_POINTWISE_FREQUENCIES_H_
#define TARN_RUNTIME_OPS_POINTWISE_FREQUENCIES_H_

#include <cmath>
#include <cstddef>

#include "runtime/ops/op.h"

namespace tarn {

// nullptr: the file gives none. Errors: another number of them; one that is below 0 or not finite.
inline Status CheckFrequencies(const flatbuffers::Vector<double>* given, size_t count) {
  if (given == nullptr) return Ok();
  if (given->size() != count) return Error(TARN_BAD_FORMAT, "%u frequencies, expected %zu", given->size(), count);
  for (uint32_t i = 0; i < given->size(); ++i) {
    if (given->Get(i) >= 0 && std::isfinite(given->Get(i))) continue;
    return Error(TARN_BAD_FORMAT, "frequency %u is %g, a number >= 0 expected", i, given->Get(i));
  }
  return Ok();
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_POINTWISE_FREQUENCIES_H_
