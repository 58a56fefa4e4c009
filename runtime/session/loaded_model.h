// A model ready for sessions: the file, the kernels for this CPU, packed weights. Immutable after Open; shared between threads.
#ifndef TARN_RUNTIME_SESSION_LOADED_MODEL_H_
#define TARN_RUNTIME_SESSION_LOADED_MODEL_H_

#include <cstdint>

#include "runtime/interpreter/packed_weights.h"
#include "runtime/interpreter/program.h"
#include "runtime/model/model.h"

namespace tarn {

struct LoadOptions {
  bool verify_weights;
  const char* isa;  // nullptr: the best
  bool portable_dense;
  Allocator allocator;
};

class LoadedModel {
 public:
  // The model and what it needs to run are checked here; weights are not packed yet. `map` may be empty: `bytes` are the caller's
  // then. Errors: as Model::Open and Program::Measure; TARN_INVALID_ARGUMENT (an unknown isa).
  static Result<LoadedModel> Open(FileMap map, Span<const uint8_t> bytes, const LoadOptions& options);

  // Reads all weights of dense layers. Errors: TARN_BAD_FORMAT (a scale that is none), TARN_OUT_OF_MEMORY, TARN_INTERNAL.
  Status Pack();

  const Model& model() const { return model_; }
  const Allocator& allocator() const { return allocator_; }
  const Kernels& kernels() const { return *kernels_; }
  const DenseBackend& dense() const { return *dense_; }
  Environment environment() const { return {&model_, kernels_, dense_, &packed_, allocator_}; }
  // What Pack() takes.
  Result<PackedBytes> MeasurePacked() const { return PackedWeights::Measure(environment()); }

  const TokenBound& bound() const { return bound_; }

 private:
  Status ChooseKernels(const LoadOptions& options);
  // A program that generates text: token ids in, a row of logits out.
  Status CheckLanguageModel() const;

  Model model_;
  Allocator allocator_{};
  const Kernels* kernels_ = nullptr;
  const DenseBackend* dense_ = nullptr;
  PackedWeights packed_;
  TokenBound bound_{UINT64_MAX, nullptr};
};

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_LOADED_MODEL_H_
