// A model ready for sessions: the file, the kernels for this CPU, packed weights. Immutable after Pack(); shared between threads.
#ifndef TARN_RUNTIME_SESSION_LOADED_MODEL_H_
#define TARN_RUNTIME_SESSION_LOADED_MODEL_H_

#include <cstdint>

#include "runtime/interpreter/packed_weights.h"
#include "runtime/model/model.h"
#include "runtime/platform/cache_file.h"

namespace tarn {

class PackedCache;

// When Pack() holds weights against their hashes.
enum class Verify : uint8_t {
  kOnce,       // unless the cache folder has a note that it did since the machine started
  kEveryTime,  // the whole weight section, and packed weights that are found
  kNever,
};
// What it did.
enum class Verified : uint8_t { kNot, kNow, kBefore };

struct LoadOptions {
  Verify verify;
  const char* isa;  // nullptr: the best
  bool portable_dense;
  Allocator allocator;
  uint64_t max_work_per_token = 0;  // this and the next: 0: in proportion to the file
  uint64_t max_packed_bytes = 0;
  uint64_t ahead_bytes = 0;  // that the caller holds for the model; they count in messages
};

// Where packed weights lie.
enum class PackedIn : uint8_t {
  kMemory,     // anonymous, or nothing is packed
  kNewFile,    // a cache file that was made now
  kFoundFile,  // a cache file that was there
};

class LoadedModel {
 public:
  // The model and what it needs to run are checked here; weights are not packed yet. `map` may be empty: `bytes` are the caller's
  // then. Errors: as Model::Open and Program::Measure; TARN_INVALID_ARGUMENT (an unknown isa).
  static Result<LoadedModel> Open(FileMap map, Span<const uint8_t> bytes, const LoadOptions& options);

  // Takes packed weights from a cache file in the folder (nullptr: none), or else reads all weights of dense layers and packs them:
  // into such a file, or where that cannot be, into anonymous memory. Verifies weights on the way: packed weights that are damaged
  // are packed anew.
  // Errors: TARN_CHECKSUM (damage in the model), TARN_OUT_OF_MEMORY, TARN_INTERNAL.
  Status Pack(const char* cache_folder = nullptr);
  // What Pack() would do now, as far as that can be known without reading weights. Errors: as Pack().
  Result<PackedIn> Foretell(const char* cache_folder) const;
  // What it did.
  PackedIn packed_in() const { return packed_in_; }
  Verified verified() const { return verified_; }

  const Model& model() const { return model_; }
  const Allocator& allocator() const { return allocator_; }
  const Kernels& kernels() const { return *kernels_; }
  const DenseBackend& dense() const { return *dense_; }
  Environment environment() const { return {&model_, kernels_, dense_, &packed_, allocator_}; }
  PackedBytes packed_bytes() const { return packed_.bytes(); }
  uint64_t packed_file_bytes() const;  // the size of a cache file
  // What Open() and Pack() take from the allocator at their peak, where packed weights go where `packed_in` says. Errors: as
  // Pack().
  Result<uint64_t> OpeningBytes(bool with_cache, PackedIn packed_in) const;
  uint64_t anonymous_bytes(PackedIn packed_in) const { return packed_in == PackedIn::kMemory ? packed_.bytes().weights : 0; }

  const TokenBound& bound(Stage stage) const { return bounds_.by_stage[static_cast<size_t>(stage)]; }
  // Of a classifier; 0: it is none.
  uint32_t labels() const;

 private:
  Status ChooseKernels(const LoadOptions& options);
  // This build has every op; every program takes token ids and gives what its task wants.
  Status CheckPrograms() const;
  // What the graph asks for, against the bounds. Errors: TARN_UNSUPPORTED.
  Status CheckWork(uint64_t most) const;
  Status CheckPacked(uint64_t most) const;
  // The token bounds of the programs, and the places of packed weights.
  Status PlanPrograms();
  Result<Instance::Draft> MakeDraft() const;
  bool packs() const { return packed_.bytes().weights > 0; }
  // These leave packed_in_ alone where no file can be used.
  Status UseFile(const PackedCache& cache);
  Status MakeFile(const PackedCache& cache);
  Status PackInMemory(const PackedCache* cache);
  // What stays, without packed weights.
  uint64_t KeptBytes() const { return ahead_bytes_ + model_.allocated_bytes() + packed_.bytes().table; }
  // Whether weights can be used that a cache file has packed; false: they must be packed anew.
  // Errors: TARN_CHECKSUM, damage in the model.
  Result<bool> Verifies(const PackedCache& cache, const CacheFile& file);

  Model model_;
  Allocator allocator_{};
  const Kernels* kernels_ = nullptr;
  const DenseBackend* dense_ = nullptr;
  uint64_t ahead_bytes_ = 0;
  Verify verify_ = Verify::kOnce;
  Verified verified_ = Verified::kNot;
  CacheFile packed_file_;
  PackedWeights packed_;
  PackedIn packed_in_ = PackedIn::kMemory;
  TokenBounds bounds_{};
};

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_LOADED_MODEL_H_
