// No files: a cache is never there, and cannot be made.
#include "runtime/platform/cache_file.h"

namespace tarn {

CacheFile::~CacheFile() = default;

CacheFile CacheFile::Open(const char*, const char*, uint64_t) { return CacheFile(); }

bool CacheFile::CanCreate(const char*, uint64_t) { return false; }

CacheFile CacheFile::Create(const char*, const char*, uint64_t) { return CacheFile(); }

bool CacheFile::Sync() const { return false; }

void CacheFile::Publish(const char*) {}

void CacheFile::KeepUnnamed() {}

}  // namespace tarn
