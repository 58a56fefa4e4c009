#include "runtime/ops/attention/attributes.h"

namespace tarn {

Status ExpectAtLeast(const char* name, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return Ok();
  return Error(TARN_BAD_FORMAT, "%s is %llu, %llu to %llu expected", name, static_cast<unsigned long long>(value),
               static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
}

Status ExpectChoice(const char* name, uint8_t value, size_t count) { return ExpectAtLeast(name, value, 0, count - 1); }

Status ExpectNumber(const char* name, float value, Bounds bounds) {
  if (IsWithin(bounds, value)) return Ok();
  return Error(TARN_BAD_FORMAT, "%s is %g, %s expected", name, static_cast<double>(value), TextOf(bounds));
}

Status ExpectAscending(const char* name, const flatbuffers::Vector<uint32_t>* list, uint32_t least, uint32_t most) {
  const uint32_t count = list == nullptr ? 0 : list->size();
  if (count < least || count > most) {
    return Error(TARN_BAD_FORMAT, "%s: %u found, %u to %u expected", name, count, least, most);
  }
  for (uint32_t i = 1; i < count; ++i) {
    if (list->Get(i) <= list->Get(i - 1)) return Error(TARN_BAD_FORMAT, "%s are not ascending at %u", name, i);
  }
  return Ok();
}

}  // namespace tarn
