#include "tools/convert/model_ops.h"

namespace tarn::convert {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

Slice ModelOps::Norm(const std::string& name, const std::string& tensor, Slice x) const {
  const auto attributes = [kind = config_.norm, eps = config_.norm_eps](FlatBufferBuilder& builder) {
    return format::CreateNorm(builder, kind, eps).Union();
  };
  return builder_.AddOp(name, format::OpAttributes::Norm, attributes, {x}, x.width(),
                        builder_.AddNormTensors(tensor, config_.norm, x.width()));
}

Slice ModelOps::Add(const std::string& name, Slice a, Slice b) const {
  return builder_.AddOp(name, format::OpAttributes::Add, NoAttributes(format::CreateAdd), {a, b}, a.width());
}

Slice ModelOps::Activation(const std::string& name, format::ActivationKind kind, Slice x) const {
  const auto attributes = [kind](FlatBufferBuilder& builder) { return format::CreateActivation(builder, kind).Union(); };
  return builder_.AddOp(name, format::OpAttributes::Activation, attributes, {x}, x.width());
}

Slice ModelOps::Dense(const std::string& name, const std::string& tensor, uint32_t rows, bool bias, Slice x) const {
  return builder_.AddDense(name, tensor, {{tensor, rows, bias}}, x);
}

uint32_t ModelOps::VocabularyMatrix(const std::string& tensor, uint32_t vocab_size) const {
  const std::string name = tensor + ".weight";
  return builder_.AddMatrix(name, {{name, {vocab_size, config_.hidden_size}, Init::kLinear}});
}

}  // namespace tarn::convert
