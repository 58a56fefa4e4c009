// Zip archives: where the bytes of their entries lie.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_ZIP_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_ZIP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace tarn::convert {

struct ZipEntry {
  uint64_t begin, bytes;  // in the archive
  bool stored;            // as they are: neither compressed nor encrypted
};

// Whether bytes begin as a zip archive does.
bool IsZip(const uint8_t* data, size_t size);

// By their names; directories are left out. Archives above 4 GB (zip64) are read, too. `name` begins every message.
// Errors: an archive that is truncated or has other bytes before it; an entry that is there twice or does not lie inside the
// archive.
std::map<std::string, ZipEntry> ReadZip(const uint8_t* data, size_t size, const std::string& name);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_ZIP_H_
