#include "tools/convert/build/model_ops.h"

#include "tools/convert/build/layers.h"

namespace tarn::convert {

using format::Slice;

Slice ModelOps::Norm(const std::string& name, const std::string& tensor, Slice x, uint32_t group) const {
  return AddNorm(&builder_, name, tensor, config_.norm, config_.norm_eps, x, group);
}

Slice ModelOps::Dense(const std::string& name, const std::string& tensor, uint32_t rows, bool bias, Slice x) const {
  return builder_.AddDense(name, tensor, {{tensor, rows, bias}}, x);
}

uint32_t ModelOps::VocabularyMatrix(const std::string& tensor, uint32_t vocab_size) const {
  const std::string name = tensor + ".weight";
  return builder_.AddMatrix(name, {{name, {vocab_size, config_.hidden_size}, Init::kLinear}});
}

}  // namespace tarn::convert
