#include "runtime/model/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/format.h"

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

const char* Digest::Text(char (&text)[kTextBytes]) const {
  for (size_t i = 0; i < sizeof(bytes); ++i) Format(text + 2 * i, 3, "%02x", bytes[i]);
  return text;
}

DigestStream::DigestStream() {
  static_assert(sizeof(state_) == sizeof(XXH3_state_t) && alignof(DigestStream) >= alignof(XXH3_state_t));
  XXH3_state_t* const state = reinterpret_cast<XXH3_state_t*>(state_);
  XXH3_INITSTATE(state);
  XXH3_128bits_reset(state);
}

void DigestStream::Add(Span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  XXH3_128bits_update(reinterpret_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

Digest DigestStream::Finish() const { return Canonical(XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state_))); }

Digest DigestOf(Span<const uint8_t> bytes) { return Canonical(XXH3_128bits(bytes.data(), bytes.size())); }

Digest DigestOf(Span<const uint8_t> first, Span<const uint8_t> second) {
  DigestStream stream;
  stream.Add(first);
  stream.Add(second);
  return stream.Finish();
}

}  // namespace tarn
