// Layers that every part of a model is made of, as its config wants them.
#ifndef TARN_TOOLS_CONVERT_BUILD_MODEL_OPS_H_
#define TARN_TOOLS_CONVERT_BUILD_MODEL_OPS_H_

#include <cstdint>
#include <string>

#include "tools/convert/build/graph_builder.h"
#include "tools/convert/config/config.h"

namespace tarn::convert {

// `name`: of the op and its value. `tensor`: of its tensors in checkpoint and file, without ".weight".
class ModelOps {
 public:
  ModelOps(const ModelConfig& config, GraphBuilder* builder) : config_(config), builder_(*builder) {}

  const ModelConfig& config() const { return config_; }
  GraphBuilder& builder() const { return builder_; }

  // `group`: columns that are normed together, 0: all.
  format::Slice Norm(const std::string& name, const std::string& tensor, format::Slice x, uint32_t group = 0) const;
  // A dense layer with the weights of one projection.
  format::Slice Dense(const std::string& name, const std::string& tensor, uint32_t rows, bool bias, format::Slice x) const;
  // [vocab_size, E], of an embedding or a head; the index of the tensor.
  uint32_t VocabularyMatrix(const std::string& tensor, uint32_t vocab_size) const;

 private:
  const ModelConfig& config_;
  GraphBuilder& builder_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_MODEL_OPS_H_
