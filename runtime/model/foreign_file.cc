#include "runtime/model/foreign_file.h"

#include <cstring>

#include "core/visible.h"

namespace tarn {

const char* ForeignFileText(const uint8_t* bytes) {
  constexpr struct {
    const char* magic;
    const char* is;
  } kKnown[] = {{"TSNP", " but a saved state, for tarn state info"},
                {"TPAK", " but a cache of packed weights"},
                {"GGUF", " but a GGUF file, which tarn-convert does not read"},
                {"version https://git-lfs", " but a Git LFS pointer: git lfs pull"},
                {"PK\3\4", " but a ZIP archive, perhaps of PyTorch: convert its directory with tarn-convert"},
                {"\x1f\x8b\b", " but a gzip file: unpack it"}};
  for (const auto& known : kKnown) {
    if (std::memcmp(bytes, known.magic, std::strlen(known.magic)) == 0) return known.is;
  }
  // The length of the JSON that follows, below 16 MiB.
  constexpr size_t kLengthBytes = 8;
  uint64_t length;
  std::memcpy(&length, bytes, kLengthBytes);
  if (length < (uint64_t{1} << 24) && bytes[kLengthBytes] == '{') {
    return " but a safetensors file: convert its directory with tarn-convert";
  }
  return LooksLikeText(bytes, kForeignBytes)
             ? " but a text, perhaps the page of an error, or a config.json: convert its directory with tarn-convert"
             : "";
}

const char* ShortFileText(Span<const uint8_t> bytes) {
  return !bytes.empty() && LooksLikeText(bytes.data(), bytes.size())
             ? "not a tarn model but a text, perhaps the message of an error"
             : "truncated or not a tarn model";
}

}  // namespace tarn
