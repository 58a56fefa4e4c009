#include "runtime/session/loaded_model.h"

namespace tarn {

Result<LoadedModel> LoadedModel::Open(FileMap map, Span<const uint8_t> bytes, const LoadOptions& options) {
  LoadedModel loaded;
  loaded.allocator_ = options.allocator;
  TARN_RETURN_IF_ERROR(loaded.ChooseKernels(options));
  TARN_ASSIGN_OR_RETURN(loaded.model_, Model::Open(std::move(map), bytes, options.verify_weights, options.allocator));
  TARN_RETURN_IF_ERROR(loaded.CheckLanguageModel());
  // Drafts the program: every op checks its attributes and shapes.
  TARN_ASSIGN_OR_RETURN(loaded.bound_, Program::Bound(loaded.environment()));
  return loaded;
}

Status LoadedModel::ChooseKernels(const LoadOptions& options) {
  kernels_ = SelectKernels(options.isa);
  if (kernels_ == nullptr) {
    return Error(TARN_INVALID_ARGUMENT, "isa '%s' is not one that this CPU and this build run; the best is '%s'", options.isa,
                 KernelNames()[0]);
  }
  dense_ = &PortableDense();
#if defined(TARN_HAVE_XNNPACK)
  if (!options.portable_dense) {
    TARN_ASSIGN_OR_RETURN(dense_, XnnpackDense());
  }
#endif
  return Ok();
}

Status LoadedModel::CheckLanguageModel() const {
  const format::Program& program = model_.program();
  const uint32_t vocab = model_.graph().vocab_size();
  const format::Value& input = *program.values()->Get(0);
  const format::Value& output = *program.values()->Get(program.outputs()->Get(0));
  const bool reads_tokens = program.num_inputs() == 1 && input.dtype() == format::DType::I32 && input.width() == 1 &&
                            input.time() == format::Time::Tokens;
  const bool writes_logits = program.outputs()->size() == 1 && output.dtype() == format::DType::F32 && output.width() == vocab &&
                             output.time() == format::Time::Outputs;
  if (reads_tokens && writes_logits) return Ok();
  return Error(TARN_BAD_FORMAT, "program '%s' does not turn token ids (i32, width 1) into rows of %u logits (f32)",
               program.name()->c_str(), vocab);
}

Status LoadedModel::Pack() {
  TARN_RETURN_IF_ERROR(model_.CheckScales());
  TARN_ASSIGN_OR_RETURN(packed_, PackedWeights::Create(environment()));
  return Ok();
}

}  // namespace tarn
