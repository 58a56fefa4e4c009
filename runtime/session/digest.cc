#include "runtime/session/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tarn {
namespace {

Digest Canonical(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  std::memcpy(digest.bytes, canonical.digest, sizeof(digest.bytes));
  return digest;
}

}  // namespace

Digest DigestOf(Span<const uint8_t> bytes) { return Canonical(XXH3_128bits(bytes.data(), bytes.size())); }

Digest DigestOf(Span<const uint8_t> first, Span<const uint8_t> second) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, first.data(), first.size());
  XXH3_128bits_update(&state, second.data(), second.size());
  return Canonical(XXH3_128bits_digest(&state));
}

}  // namespace tarn
