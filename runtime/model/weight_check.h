// Checks the weight section of a model against its hash while somebody else reads it, so that every page comes from the file once.
#ifndef TARN_RUNTIME_MODEL_WEIGHT_CHECK_H_
#define TARN_RUNTIME_MODEL_WEIGHT_CHECK_H_

#include <cstdint>

#include "runtime/model/digest.h"
#include "runtime/model/model.h"

namespace tarn {

class WeightCheck {
 public:
  // `model` outlives the check.
  explicit WeightCheck(const Model& model) : model_(model) {}

  // Hashes the section up to the end of `bytes`, a part of it, unless that is done. They are in the caches then, for the caller to
  // read; the pages before them are let go.
  void ReadThrough(Span<const uint8_t> bytes);
  // Hashes what is left. Errors: TARN_CHECKSUM, where the hash is not the header's.
  Status Finish();

 private:
  void HashTo(size_t end, bool forget);

  const Model& model_;
  DigestStream stream_;
  size_t hashed_ = 0;  // bytes, from the start of the section
};

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_WEIGHT_CHECK_H_
