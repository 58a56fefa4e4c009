// No files, so no cache of packed weights.
#include "runtime/session/packed_cache.h"

namespace tarn {

uint64_t PackedCache::FileBytes(const PackedWeights&) { return 0; }

Result<PackedCache> PackedCache::In(const char*, const Environment&, const PackedWeights&) { return PackedCache(); }

Result<uint64_t> PackedCache::WorkingBytes(const Environment&) { return 0; }

CacheFile PackedCache::Find() const { return CacheFile(); }

bool PackedCache::BodyIsWhole(const CacheFile&) const { return false; }

bool PackedCache::RestIsWhole(const CacheFile&) const { return false; }

bool PackedCache::IsNoted(const CacheFile&) const { return false; }

void PackedCache::Note(const CacheFile&) const {}

bool PackedCache::AwaitNextTick(const CacheFile&) const { return false; }

bool PackedCache::CanCreate() const { return false; }

CacheFile PackedCache::Create() const { return CacheFile(); }

bool PackedCache::Finish(CacheFile*) const { return false; }

}  // namespace tarn
