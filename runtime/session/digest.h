// XXH3-128 as files and snapshots hold it: in canonical byte order.
#ifndef TARN_RUNTIME_SESSION_DIGEST_H_
#define TARN_RUNTIME_SESSION_DIGEST_H_

#include <cstdint>
#include <cstring>

#include "runtime/core/span.h"

namespace tarn {

struct Digest {
  uint8_t bytes[16];
};

inline bool operator==(const Digest& a, const Digest& b) { return std::memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0; }

Digest DigestOf(Span<const uint8_t> bytes);
// Of the one after the other.
Digest DigestOf(Span<const uint8_t> first, Span<const uint8_t> second);

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_DIGEST_H_
