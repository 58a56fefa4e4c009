// A file that keeps a model's packed weights between starts; README.md of this folder has its bytes.
//
// The file is a cache: one that is damaged, foreign, of another size or of another layout is as good as none, and replaced.
#ifndef TARN_RUNTIME_SESSION_PACKED_CACHE_H_
#define TARN_RUNTIME_SESSION_PACKED_CACHE_H_

#include <cstdint>

#include "runtime/interpreter/packed_weights.h"
#include "runtime/platform/cache_file.h"

namespace tarn {

class PackedCache {
 public:
  PackedCache() = default;

  // The size of the file.
  static uint64_t FileBytes(const PackedWeights& plan);
  // What In() takes from the allocator and gives back. Errors: as In().
  static Result<uint64_t> WorkingBytes(const Environment& environment);

  // Of the planned weights of a model, in `folder`. Everything that is passed outlives the cache.
  // Errors: those of packing a few small layers, by which the layout of this CPU is known.
  static Result<PackedCache> In(const char* folder, const Environment& environment, const PackedWeights& plan);

  // The file, if it is there and its header and table are what this build would write. The packed weights are not read.
  CacheFile Find() const;
  // Whether the packed weights of a file have the hash of its header: reads all of them.
  bool BodyIsWhole(const CacheFile& file) const;
  // Whether the weights that the model has besides are those of which the file was made: reads them, from the model.
  bool RestIsWhole(const CacheFile& file) const;

  // Whether the model and this file (one that does not exist: nothing is packed) were noted in the folder, in this run of the
  // machine, and are unchanged.
  bool IsNoted(const CacheFile& file) const;
  void Note(const CacheFile& file) const;

  // Before the first byte is hashed: a change that comes later then moves the times that a note tells (WaitForNextTick). False:
  // it might not, so there must be no note. `packed`: a file that was found.
  bool AwaitNextTick(const CacheFile& packed) const;

  // Whether Create() would work now: as CacheFile::CanCreate.
  bool CanCreate() const;
  // A file to pack into; without a name until Finish().
  CacheFile Create() const;
  // False: the weights cannot be trusted to reach the disk, and the file must not be used.
  bool Finish(CacheFile* file) const;

  // The packed weights of a file: its end.
  Span<uint8_t> Body(CacheFile* file) const { return {file->writable().end() - body_bytes_, body_bytes_}; }
  Span<const uint8_t> Body(const CacheFile& file) const { return {file.bytes().end() - body_bytes_, body_bytes_}; }

 private:
  struct Header;
  static constexpr size_t kNameBytes = 96;

  Header ExpectedHeader() const;
  static Header HeaderOf(const CacheFile& file);
  Digest DigestOfRest() const;

  const char* folder_ = nullptr;
  const Model* model_ = nullptr;
  const PackedWeights* plan_ = nullptr;
  const uint8_t* fingerprint_ = nullptr;
  uint64_t layout_ = 0;
  Span<const PackedWeights::Entry> entries_;
  uint64_t file_bytes_ = 0;
  size_t body_bytes_ = 0;
  char name_[kNameBytes] = "";
  char note_[kNameBytes] = "";
};

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_PACKED_CACHE_H_
