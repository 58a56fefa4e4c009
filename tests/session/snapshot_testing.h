// What the tests of snapshots share.
#ifndef TARN_TESTS_SESSION_SNAPSHOT_TESTING_H_
#define TARN_TESTS_SESSION_SNAPSHOT_TESTING_H_

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn::snapshot_test {

using Bytes = std::vector<uint8_t>;
using Bits = std::vector<uint32_t>;  // of logits

constexpr size_t kVocab = 256;
constexpr size_t kHeaderBytes = 80;
constexpr size_t kDigestBytes = 16;

inline int32_t Token(size_t index) { return static_cast<int32_t>(std::mt19937(static_cast<uint32_t>(index))() % kVocab); }

inline Bytes Save(const Session& session, bool is_compact = false) {
  // One byte more, which is nobody's, and on an odd address.
  const size_t size = static_cast<size_t>(session.SnapshotBytes(is_compact));
  Bytes memory(size + 2, 0xEE);
  const Status status = session.Save({memory.data() + 1, size}, is_compact);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(memory.front(), 0xEE);
  EXPECT_EQ(memory.back(), 0xEE);
  return {memory.begin() + 1, memory.end() - 1};
}

inline void Restore(Session* session, const Bytes& snapshot) {
  const Status status = session->Restore({snapshot.data(), snapshot.size()});
  EXPECT_TRUE(status.ok()) << status.message();
}

inline void Rehash(Bytes* snapshot) {
  const size_t hashed = snapshot->size() - kDigestBytes;
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(snapshot->data(), hashed));
  std::memcpy(snapshot->data() + hashed, canonical.digest, kDigestBytes);
}

// Tokens [first, first + count) of a text that every sequence has for itself. Returns the logits of the last.
inline Bits Feed(Session* session, size_t first, size_t count) {
  const size_t batch = session->instance().limits().batch;
  std::vector<int32_t> tokens;
  for (size_t sequence = 0; sequence < batch; ++sequence) {
    for (size_t i = 0; i < count; ++i) tokens.push_back(Token(1000 * sequence + first + i));
  }
  const Result<const float*> logits = session->Prefill(tokens.data(), count);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  Bits bits(batch * kVocab);
  if (logits.ok()) std::memcpy(bits.data(), logits.value(), bits.size() * sizeof(float));
  return bits;
}

inline void ExpectRefused(Session* session, const Bytes& snapshot, tarn_status code, const std::string& words) {
  const Bytes before = Save(*session);
  const Status status = session->Restore({snapshot.data(), snapshot.size()});
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message() << ", expected: " << words;
  ASSERT_EQ(Save(*session), before) << status.message();
}

}  // namespace tarn::snapshot_test

#endif  // TARN_TESTS_SESSION_SNAPSHOT_TESTING_H_
