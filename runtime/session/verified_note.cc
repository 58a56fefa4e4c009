#include "runtime/session/verified_note.h"

#include <cstring>

#include "core/format.h"
#include "runtime/platform/cache_file.h"

namespace tarn {
namespace {

size_t Describe(const char* what, const FileIdentity& file, char* text, size_t text_bytes) {
  if (!file.known) return Format(text, text_bytes, "%s none\n", what);
  const auto number = [](auto value) { return static_cast<unsigned long long>(value); };
  return Format(text, text_bytes, "%s device %llx inode %llu size %llu offset %llu length %llu modified %llu changed %llu\n", what,
                number(file.device), number(file.inode), number(file.size_bytes), number(file.offset_bytes),
                number(file.length_bytes), number(file.modified_ns), number(file.changed_ns));
}

}  // namespace

VerifiedNote::VerifiedNote(const FileIdentity& model, const FileIdentity& packed) : model_(model), packed_(packed) {
  char boot[kBootIdBytes];
  if (!model.known || !ReadBootId(boot)) return;
  length_ = Format(text_, kTextBytes, "tarn verified 1\nboot %s\n", boot);
  length_ += Describe("model", model, text_ + length_, kTextBytes - length_);
  length_ += Describe("packed", packed, text_ + length_, kTextBytes - length_);
}

bool VerifiedNote::IsIn(const char* folder, const char* name) const {
  if (length_ == 0) return false;
  const CacheFile file = CacheFile::Open(folder, name, length_);
  return file.exists() && std::memcmp(file.bytes().data(), text_, length_) == 0;
}

void VerifiedNote::Write(const char* folder, const char* name) const {
  if (length_ == 0 || !WaitForNextTick(model_) || (packed_.known && !WaitForNextTick(packed_))) return;
  CacheFile file = CacheFile::Create(folder, name, length_);
  if (!file.exists()) return;
  std::memcpy(file.writable().data(), text_, length_);
  file.Publish(name);
}

}  // namespace tarn
