#include "tools/convert/writer/output_file.h"

#include <algorithm>

namespace tarn::convert {

void MemorySink::Write(const void* bytes, size_t count) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  bytes_.insert(bytes_.end(), begin, begin + count);
}

void MemorySink::Rewrite(size_t at, const void* bytes, size_t count) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  std::copy(begin, begin + count, bytes_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace tarn::convert
