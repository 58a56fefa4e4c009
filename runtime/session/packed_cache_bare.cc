// No files, so no cache of packed weights.
#include "runtime/session/packed_cache.h"

namespace tarn {

uint64_t PackedCache::FileBytes(const PackedWeights&) { return 0; }

Result<PackedCache> PackedCache::In(const char*, const Environment&, const PackedWeights&) { return PackedCache(); }

CacheFile PackedCache::Find(bool) const { return CacheFile(); }

bool PackedCache::CanCreate() const { return false; }

CacheFile PackedCache::Create() const { return CacheFile(); }

bool PackedCache::Finish(CacheFile*) const { return false; }

}  // namespace tarn
