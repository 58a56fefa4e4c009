#include "runtime/session/loaded_model.h"

#include "runtime/session/packed_cache.h"

namespace tarn {

Result<LoadedModel> LoadedModel::Open(FileMap map, Span<const uint8_t> bytes, const LoadOptions& options) {
  LoadedModel loaded;
  loaded.allocator_ = options.allocator;
  loaded.verify_weights_ = options.verify_weights;
  TARN_RETURN_IF_ERROR(loaded.ChooseKernels(options));
  TARN_ASSIGN_OR_RETURN(loaded.model_, Model::Open(std::move(map), bytes, options.verify_weights, options.allocator));
  TARN_RETURN_IF_ERROR(loaded.CheckLanguageModel());
  // Before any layer is drafted: XNNPACK looks at the scales of int4 already when it is asked for sizes.
  TARN_RETURN_IF_ERROR(loaded.model_.CheckScales());
  // Drafts the program: every op checks its attributes and shapes.
  TARN_ASSIGN_OR_RETURN(loaded.bound_, Program::Bound(loaded.environment()));
  TARN_ASSIGN_OR_RETURN(loaded.packed_, PackedWeights::Plan(loaded.environment()));
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
  const format::Program& program = *model_.program(Stage::kDecode);
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

Status LoadedModel::Pack(const char* cache_folder) {
  if (UsesCache(cache_folder)) TARN_RETURN_IF_ERROR(PackInFile(cache_folder));
  if (packed_in_ == PackedIn::kMemory) TARN_RETURN_IF_ERROR(packed_.Pack(environment()));
  return Ok();
}

// Leaves packed_in_ alone where no file can be used.
Status LoadedModel::PackInFile(const char* cache_folder) {
  TARN_ASSIGN_OR_RETURN(const PackedCache cache, PackedCache::In(cache_folder, environment(), packed_));
  packed_file_ = cache.Find(verify_weights_);
  if (packed_file_.exists()) {
    packed_.Use(cache.Body(packed_file_).data());
    packed_in_ = PackedIn::kFoundFile;
    return Ok();
  }
  CacheFile file = cache.Create();
  if (!file.exists()) return Ok();
  TARN_RETURN_IF_ERROR(packed_.Pack(environment(), cache.Body(&file)));
  // A published file stands for every model of this fingerprint: weights that only claim it serve this model alone.
  if (!verify_weights_ && !model_.CheckWeights().ok()) {
    file.KeepUnnamed();
  } else if (!cache.Finish(&file)) {
    return Ok();
  }
  packed_file_ = std::move(file);
  packed_in_ = PackedIn::kNewFile;
  return Ok();
}

uint64_t LoadedModel::packed_file_bytes() const { return PackedCache::FileBytes(packed_); }

Result<PackedIn> LoadedModel::Foretell(const char* cache_folder) const {
  if (!UsesCache(cache_folder)) return PackedIn::kMemory;
  TARN_ASSIGN_OR_RETURN(const PackedCache cache, PackedCache::In(cache_folder, environment(), packed_));
  if (cache.Find(/*verify=*/false).exists()) return PackedIn::kFoundFile;
  return cache.CanCreate() ? PackedIn::kNewFile : PackedIn::kMemory;
}

}  // namespace tarn
