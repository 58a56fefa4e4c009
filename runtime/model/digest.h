// XXH3-128 as files and snapshots hold it: in canonical byte order.
#ifndef TARN_RUNTIME_MODEL_DIGEST_H_
#define TARN_RUNTIME_MODEL_DIGEST_H_

#include <cstdint>
#include <cstring>

#include "core/span.h"

namespace tarn {

struct Digest {
  static constexpr size_t kTextBytes = 33;  // 32 hex digits and a NUL

  // Writes the digits into `text` and returns it.
  const char* Text(char (&text)[kTextBytes]) const;

  uint8_t bytes[16];
};

inline bool operator==(const Digest& a, const Digest& b) { return std::memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0; }

// Of bytes that come piece by piece.
class DigestStream {
 public:
  DigestStream();
  void Add(Span<const uint8_t> bytes);
  Digest Finish() const;

 private:
  alignas(64) uint8_t state_[576];  // XXH3_state_t
};

Digest DigestOf(Span<const uint8_t> bytes);
// Of the one after the other.
Digest DigestOf(Span<const uint8_t> first, Span<const uint8_t> second);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_DIGEST_H_
