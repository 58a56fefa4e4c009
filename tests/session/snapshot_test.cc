// Snapshots: what goes on from one goes on bit for bit, and whatever is no whole snapshot of this session changes nothing.
#include "runtime/session/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "runtime/session/snapshot_format.h"
#include "tests/session/snapshot_testing.h"
#include "tests/support/loaded.h"

namespace tarn {
namespace {

using snapshot_test::Bits;
using snapshot_test::Bytes;
using snapshot_test::ExpectRefused;
using snapshot_test::Feed;
using snapshot_test::kDigestBytes;
using snapshot_test::kHeaderBytes;
using snapshot_test::kVocab;
using snapshot_test::Rehash;
using snapshot_test::Restore;
using snapshot_test::Save;
using snapshot_test::Token;
using test::CausalCase;
using test::Loaded;
using test::SessionPointer;

// Feeds pieces of a text, saving before each. A session that is restored to any of them, be it new or the old one, gives the same
// bits from there on. `other` has limits that do not change the state.
void ExpectExact(const Loaded& model, const Limits& limits, const Limits& other, size_t piece, size_t pieces) {
  const SessionPointer session = model.New(limits);
  std::vector<Bytes> snapshots;
  std::vector<Bits> wanted;
  for (size_t i = 0; i < pieces; ++i) {
    snapshots.push_back(Save(*session));
    wanted.push_back(Feed(session.get(), i * piece, piece));
  }
  const SessionPointer fresh = model.New(other);
  for (size_t i = pieces; i-- > 0;) {
    for (Session* restored : {session.get(), fresh.get()}) {
      Restore(restored, snapshots[i]);
      EXPECT_EQ(restored->instance().tokens_seen(), i * piece);
      EXPECT_EQ(Save(*restored), snapshots[i]);
      for (size_t j = i; j < pieces; ++j) ASSERT_EQ(Feed(restored, j * piece, piece), wanted[j]) << i << ", " << j;
    }
  }
}

class SnapshotTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, SnapshotTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(SnapshotTest, EveryPositionGoesOnBitForBit) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  ExpectExact(model, {/*batch=*/1, 1, 1, 1}, {1, 40, 3, 1}, /*piece=*/1, /*pieces=*/24);
  ExpectExact(model, {/*batch=*/3, 16, 1, 1}, {3, 64, 1, 1}, /*piece=*/13, /*pieces=*/9);
}

// The bound that the header promises, and that rows not used yet are not there.
TEST_P(SnapshotTest, BytesFollowWhatIsUsed) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer session = model.New({2, 130, 1, 1});
  const uint64_t state = session->instance().bytes().state;
  const uint64_t most = state * 513 / 512 + 64;
  EXPECT_EQ(session->SnapshotBytes(), kHeaderBytes + ((state - kAlignment) / kAlignment + 7) / 8 + kDigestBytes);
  Feed(session.get(), 0, 130);
  const uint64_t full = session->SnapshotBytes();
  EXPECT_LE(full, most);
  session->Reset();
  Feed(session.get(), 0, 3);
  if (std::string(GetParam().name).find("softmax") == 0) {
    EXPECT_LT(session->SnapshotBytes(), full / 8);
  }
}

// Read without a session, in pieces that begin and end anywhere: the bytes of the session's states, each from a block on.
TEST_P(SnapshotTest, StatesAreReadWithoutASession) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer session = model.New({3, 16, 1, 1});
  Feed(session.get(), 0, 5);
  const Bytes snapshot = Save(*session);
  Bytes wanted;
  for (uint32_t i = 0; i < session->instance().state_count(); ++i) {
    const Span<uint8_t> state = session->instance().state_bytes(i);
    wanted.insert(wanted.end(), state.begin(), state.end());
    wanted.resize(static_cast<size_t>(AlignUp(wanted.size())));
  }
  const Result<SnapshotHeader> header = ReadSnapshotHeader({snapshot.data(), snapshot.size()});
  ASSERT_TRUE(header.ok()) << header.status().message();
  ASSERT_TRUE(CheckSnapshotMap(header.value(), snapshot.data()).ok());
  EXPECT_EQ(header.value().tokens, 5u);
  ASSERT_EQ(header.value().state_bytes, wanted.size());
  for (const size_t piece : {size_t{1} << 30, size_t{64}, size_t{100}, size_t{4097}}) {
    Bytes found(wanted.size(), 0xEE);
    for (size_t at = 0; at < found.size(); at += piece) {
      const Span<uint8_t> part(found.data() + at, std::min(piece, found.size() - at));
      ASSERT_TRUE(ReadSnapshotStates(header.value(), snapshot.data(), at, part).ok());
    }
    EXPECT_EQ(found, wanted) << piece;
  }
  Bytes found(2, 0xEE);
  const Status status = ReadSnapshotStates(header.value(), snapshot.data(), wanted.size() - 1, {found.data(), found.size()});
  EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(found, Bytes(2, 0xEE));
}

TEST(Snapshot, AForkGoesItsOwnWay) {
  const Loaded model(test::ConfigText(test::kSoftmax));
  const SessionPointer first = model.New({1, 8, 1, 1}), second = model.New({1, 8, 1, 1});
  Feed(first.get(), 0, 20);
  Restore(second.get(), Save(*first));
  const Bits one = Feed(first.get(), 20, 5), two = Feed(second.get(), 70, 5);
  EXPECT_NE(one, two);
  first->Reset();
  Feed(first.get(), 0, 20);
  EXPECT_EQ(Feed(first.get(), 70, 5), two);
}

// ---- Delta snapshots ----

Bytes SaveDelta(const Session& session, const Bytes& base) {
  const Result<uint64_t> size = session.DeltaBytes({base.data(), base.size()});
  EXPECT_TRUE(size.ok()) << size.status().message();
  if (!size.ok()) return {};
  Bytes delta(static_cast<size_t>(size.value()));
  const Status status = session.SaveDelta({base.data(), base.size()}, {delta.data(), delta.size()});
  EXPECT_TRUE(status.ok()) << status.message();
  return delta;
}

Status RestoreDelta(Session* session, const Bytes& base, const Bytes& delta) {
  return session->RestoreDelta({base.data(), base.size()}, {delta.data(), delta.size()});
}

// From every snapshot of a text to every later one, and back to it: the session has the state of the whole snapshot, bit for bit.
TEST_P(SnapshotTest, ADeltaIsWhatItsBaseIsNot) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer session = model.New({2, 16, 1, 1}), fresh = model.New({2, 16, 1, 1});
  std::vector<Bytes> snapshots;
  for (size_t i = 0; i < 5; ++i) {
    Feed(session.get(), i * 7, 7);
    if (i == 3) {
      ASSERT_TRUE(session->ResetSequence(1).ok());  // sequences of their own lengths
    }
    snapshots.push_back(Save(*session));
  }
  for (const Bytes& base : snapshots) {
    for (const Bytes& wanted : snapshots) {
      Restore(session.get(), wanted);
      const Bytes delta = SaveDelta(*session, base);
      EXPECT_LE(delta.size(), session->instance().bytes().state * 513 / 512 + 80 + 8 * 2);
      fresh->Reset();
      const Status status = RestoreDelta(fresh.get(), base, delta);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(Save(*fresh), wanted);
    }
  }
}

// Of a cache, a delta has the rows of the tokens since the base, in whole blocks; of nothing new, no block.
TEST(Snapshot, ADeltaOfACacheHasItsNewRows) {
  const Loaded model(test::ConfigText(test::kSoftmax));
  const SessionPointer session = model.New({1, 64, 1, 1});
  Feed(session.get(), 0, 100);
  const Bytes base = Save(*session);
  const Bytes nothing = SaveDelta(*session, base);
  Feed(session.get(), 100, 4);
  const Bytes delta = SaveDelta(*session, base);
  uint64_t row_bytes = 0;
  for (uint32_t i = 0; i < session->instance().state_count(); ++i) {
    const size_t positions = 150;
    row_bytes += session->instance().state_bytes(i).size() / positions;
  }
  EXPECT_GE(delta.size() - nothing.size(), 4 * row_bytes);
  EXPECT_LE(delta.size() - nothing.size(), 4 * row_bytes + 2 * kAlignment * session->instance().state_count());
  EXPECT_LT(delta.size(), base.size() / 10);
}

// The bytes of the base and of the delta: where they overlap, the one would destroy the other while it is read.
TEST(Snapshot, ADeltaOverItsBaseIsRefused) {
  const Loaded model(test::ConfigText(test::kSoftmax));
  const SessionPointer session = model.New({1, 8, 1, 1});
  Feed(session.get(), 0, 20);
  const Bytes base = Save(*session);
  Feed(session.get(), 20, 1);
  Bytes memory(3 * base.size());
  const auto save = [&](size_t base_at, size_t delta_at) {
    std::copy(base.begin(), base.end(), memory.begin() + static_cast<ptrdiff_t>(base_at));
    const Bytes before = memory;
    const Status status = session->SaveDelta({memory.data() + base_at, base.size()}, {memory.data() + delta_at, base.size()});
    EXPECT_EQ(status.ok(), memory != before) << status.message();
    return status.code();
  };
  const size_t size = base.size();
  EXPECT_EQ(save(0, 0), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(save(0, size - 1), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(save(size - 1, 0), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(save(0, size), TARN_OK);
  EXPECT_EQ(save(size, 0), TARN_OK);
}

TEST(Snapshot, DeltasThatDoNotBelongAreRefused) {
  const Loaded model(test::ConfigText(test::kSoftmax)), stranger(test::ConfigText(test::kRfa));
  const SessionPointer session = model.New({1, 8, 1, 1}), foreign = stranger.New({1, 8, 1, 1});
  const Bytes empty = Save(*session);
  Feed(session.get(), 0, 8);
  const Bytes base = Save(*session);
  Feed(session.get(), 8, 4);
  const Bytes delta = SaveDelta(*session, base);
  const auto refused = [&](const Bytes& of, const Bytes& changes, tarn_status code, const std::string& words) {
    const Bytes before = Save(*session);
    const Status status = RestoreDelta(session.get(), of, changes);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message() << ", expected: " << words;
    EXPECT_EQ(Save(*session), before);
  };
  Bytes damaged = base;
  damaged[damaged.size() / 2] ^= 1;
  refused(empty, delta, TARN_INVALID_ARGUMENT, "delta: XXH3-128 of the base is ");
  refused(base, base, TARN_INVALID_ARGUMENT, "delta: version is 1, 3 expected");
  refused(delta, delta, TARN_INVALID_ARGUMENT, "base: it is a delta snapshot");
  refused(damaged, delta, TARN_CHECKSUM, "base: XXH3-128 is ");
  refused(Save(*foreign), delta, TARN_INVALID_ARGUMENT, "base: fingerprint is ");
  refused(Bytes(1), delta, TARN_BAD_FORMAT, "base: size is 1 bytes");
  ExpectRefused(session.get(), delta, TARN_INVALID_ARGUMENT, "snapshot: it is a delta snapshot");
  EXPECT_EQ(session->DeltaBytes({delta.data(), delta.size()}).status().code(), TARN_INVALID_ARGUMENT);
  for (size_t size = 0; size < delta.size(); ++size) {
    const Bytes cut(delta.begin(), delta.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_EQ(RestoreDelta(session.get(), base, cut).code(), TARN_BAD_FORMAT) << size;
  }
  const Bytes before = Save(*session);
  for (size_t bit = 0; bit < delta.size() * 8; bit += 3) {
    Bytes flipped = delta;
    flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ 1u << (bit % 8));
    ASSERT_FALSE(RestoreDelta(session.get(), base, flipped).ok()) << bit;
  }
  EXPECT_EQ(Save(*session), before);
  Bytes memory(delta.size() - 1, 0xEE);
  EXPECT_EQ(session->SaveDelta({base.data(), base.size()}, {memory.data(), memory.size()}).code(), TARN_BUFFER_TOO_SMALL);
  EXPECT_EQ(memory, Bytes(memory.size(), 0xEE));
}

// ---- Sources ----

std::string Seq2Seq(const std::string& cross, const std::string& causal) {
  return R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 2, "vocab_size": 256, "hidden_size": 32, "num_heads": 4,
    "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
    "position_embedding": "sinusoidal", "encoder_attention": {"system": "softmax", "max_context": 40}, "cross_attention": )" +
         cross + R"(, "decoder_attention": )" + causal + "}";
}

constexpr const char* kSoftmaxCross = R"({"system": "softmax", "max_context": 40})";
constexpr const char* kCrosses[] = {kSoftmaxCross, test::kAbc, test::kArccos,
                                    R"({"system": "kv_clustering", "num_slots": 4, "iterations": 2})"};
// 2 sources of 3 beams.
constexpr Limits kSources = {/*batch=*/6, 8, 1, 1, /*beams=*/3, /*max_source=*/12};

// Sources of different lengths, and beams that have changed places.
void EncodeAndReorder(Session* session) {
  std::vector<int32_t> sources;
  for (size_t i = 0; i < 24; ++i) sources.push_back(Token(i));
  const size_t lengths[] = {12, 5};
  ASSERT_TRUE(session->Encode(sources.data(), 12, lengths).ok());
  Feed(session, 500, 3);
  const uint32_t parents[] = {1, 1, 0, 5, 3, 4};
  ASSERT_TRUE(session->Reorder(parents).ok());
}

TEST(Snapshot, SourcesAndBeamsGoOnBitForBit) {
  for (const char* cross : kCrosses) {
    for (const format::DType state : {format::DType::F32, format::DType::I8}) {
      SCOPED_TRACE(cross);
      const Loaded model(Seq2Seq(cross, R"({"system": "sliding_window", "window": 5})"), state);
      const SessionPointer session = model.New(kSources);
      EncodeAndReorder(session.get());
      const Bytes snapshot = Save(*session);
      const Bits wanted[] = {Feed(session.get(), 0, 1), Feed(session.get(), 1, 8)};
      Limits other = kSources;
      other.max_chunk = 20;
      // What keeps a constant size of a source decodes from one that it could not encode.
      if (cross != kSoftmaxCross) other.max_source = 1;
      const SessionPointer fresh = model.New(other);
      for (Session* restored : {session.get(), fresh.get()}) {
        Restore(restored, snapshot);
        EXPECT_EQ(restored->instance().source_tokens()[1], 5u);
        EXPECT_EQ(Feed(restored, 0, 1), wanted[0]);
        EXPECT_EQ(Feed(restored, 1, 8), wanted[1]);
      }
    }
  }
}

// Of one source and other beams to another one, with sources of other lengths.
TEST(Snapshot, DeltasHaveSourcesToo) {
  for (const char* cross : kCrosses) {
    SCOPED_TRACE(cross);
    const Loaded model(Seq2Seq(cross, R"({"system": "sliding_window", "window": 5})"));
    const SessionPointer session = model.New(kSources), fresh = model.New(kSources);
    const Bytes nothing = Save(*session);
    EncodeAndReorder(session.get());
    const Bytes encoded = Save(*session);
    Feed(session.get(), 0, 2);
    const Bytes wanted = Save(*session);
    for (const Bytes& base : {nothing, encoded, wanted}) {
      ASSERT_TRUE(RestoreDelta(fresh.get(), base, SaveDelta(*session, base)).ok());
      EXPECT_EQ(fresh->instance().source_tokens()[1], 5u);
      EXPECT_EQ(Save(*fresh), wanted);
    }
  }
}

TEST(Snapshot, NothingEncodedIsRestoredToo) {
  const Loaded model(Seq2Seq(test::kAbc, test::kRfa));
  const SessionPointer session = model.New(kSources);
  const Bytes nothing = Save(*session);
  EncodeAndReorder(session.get());
  Restore(session.get(), nothing);
  const std::vector<int32_t> step(6, 'x');
  EXPECT_EQ(session->Prefill(step.data(), 1).status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(Save(*session), nothing);
}

TEST(Snapshot, NothingIsLeftOfASourceBefore) {
  for (const char* cross : kCrosses) {
    for (const format::DType state : {format::DType::F32, format::DType::I8}) {
      SCOPED_TRACE(cross);
      const Loaded model(Seq2Seq(cross, R"({"system": "sliding_window", "window": 5})"), state);
      const SessionPointer session = model.New(kSources), fresh = model.New(kSources);
      EncodeAndReorder(session.get());
      const std::vector<int32_t> others(24, 'o');
      const size_t lengths[] = {3, 7};
      for (Session* encoded : {session.get(), fresh.get()}) ASSERT_TRUE(encoded->Encode(others.data(), 12, lengths).ok());
      EXPECT_EQ(Save(*session), Save(*fresh));
    }
  }
}

// ---- Refusals ----

// Cut anywhere, or with any bit flipped.
void ExpectNoneIsRestored(Session* session, const Bytes& other) {
  for (size_t size = 0; size < other.size(); ++size) {
    // A copy, so that a sanitizer sees the end.
    const Bytes cut(other.begin(), other.begin() + static_cast<ptrdiff_t>(size));
    ExpectRefused(session, cut, TARN_BAD_FORMAT, "snapshot: size is " + std::to_string(size) + " bytes");
  }
  Feed(session, 0, 4);
  const Bytes before = Save(*session);
  for (size_t bit = 0; bit < other.size() * 8; ++bit) {
    Bytes flipped = other;
    flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ 1u << (bit % 8));
    ASSERT_FALSE(session->Restore({flipped.data(), flipped.size()}).ok()) << bit;
  }
  EXPECT_EQ(Save(*session), before);
}

TEST(Snapshot, EveryTruncationAndEveryFlippedBitIsRefused) {
  const Loaded model(Seq2Seq(test::kAbc, test::kRfa));
  const SessionPointer session = model.New({/*batch=*/2, 4, 1, 1, /*beams=*/1, /*max_source=*/12});
  const std::vector<int32_t> sources(24, 'a');
  const size_t lengths[] = {12, 5};
  ASSERT_TRUE(session->Encode(sources.data(), 12, lengths).ok());
  for (const bool is_compact : {false, true}) ExpectNoneIsRestored(session.get(), Save(*session, is_compact));
}

TEST(Snapshot, AMemoryThatIsTooSmallIsNotTouched) {
  const Loaded model(test::ConfigText(test::kAbc));
  const SessionPointer session = model.New({1, 8, 1, 1});
  Feed(session.get(), 0, 5);
  const size_t size = static_cast<size_t>(session->SnapshotBytes());
  Bytes memory(size, 0xEE);
  const Status status = session->Save({memory.data(), size - 1});
  EXPECT_EQ(status.code(), TARN_BUFFER_TOO_SMALL);
  const std::string words = "has " + std::to_string(size - 1) + " bytes, " + std::to_string(size) + " are needed";
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
  EXPECT_EQ(memory, Bytes(size, 0xEE));
  // Larger ones are welcome, to save and to restore.
  memory.resize(size + 100, 0xEE);
  ASSERT_TRUE(session->Save({memory.data(), memory.size()}).ok());
  Restore(session.get(), memory);
}

TEST(Snapshot, OtherModelsAndShapesAreNamed) {
  const Loaded model(Seq2Seq(kSoftmaxCross, test::kRfa)), stranger(Seq2Seq(kSoftmaxCross, test::kAbc));
  const SessionPointer session = model.New(kSources);
  EncodeAndReorder(session.get());
  const SessionPointer foreign = stranger.New(kSources);
  ExpectRefused(session.get(), Save(*foreign), TARN_INVALID_ARGUMENT, "it is of another model");
  Limits limits = kSources;
  limits.batch = 4;
  limits.beams = 2;
  ExpectRefused(session.get(), Save(*model.New(limits)), TARN_INVALID_ARGUMENT, "sequences is 4, 6 expected");
  limits.batch = 6;
  ExpectRefused(session.get(), Save(*model.New(limits)), TARN_INVALID_ARGUMENT, "sources is 3, 2 expected");
  limits = kSources;
  limits.max_source = 20;
  ExpectRefused(session.get(), Save(*model.New(limits)), TARN_INVALID_ARGUMENT, "max_source is 20, 12 expected");
}

// A header field of a snapshot, changed by somebody who knows how to hash.
template <typename T>
Bytes With(Bytes snapshot, size_t offset, T value) {
  std::memcpy(snapshot.data() + offset, &value, sizeof(value));
  Rehash(&snapshot);
  return snapshot;
}

TEST(Snapshot, FieldsThatLieAreNamed) {
  const Loaded model(Seq2Seq(kSoftmaxCross, test::kSoftmax));
  const SessionPointer session = model.New(kSources);
  EncodeAndReorder(session.get());
  const Bytes good = Save(*session);
  Feed(session.get(), 0, 4);
  const auto refused = [&](const Bytes& snapshot, tarn_status code, const std::string& words) {
    ExpectRefused(session.get(), snapshot, code, words);
  };
  const std::string size = std::to_string(good.size());
  refused(With<uint8_t>(good, 0, 'X'), TARN_BAD_FORMAT, "magic is 58534e500d0a1a0a, 54534e500d0a1a0a expected");
  refused(With<uint32_t>(good, 0, 0x4E524154), TARN_BAD_FORMAT, "no snapshot but a model");
  refused(With<uint32_t>(good, 0, 0x4D525054), TARN_BAD_FORMAT, "no snapshot but a file of --prompt-cache");
  refused(With<uint64_t>(good, 0, 0x6C6D7468203A3C20), TARN_BAD_FORMAT, "no snapshot but a text");
  refused(With<uint32_t>(good, 8, 5), TARN_UNSUPPORTED, "version is 5, 1 to 4 expected");
  refused(With<uint64_t>(good, 16, good.size() + 1), TARN_BAD_FORMAT, "size is " + size + " bytes, its header says");
  refused(With<uint64_t>(good, 16, 95), TARN_BAD_FORMAT, "its header says 95");
  refused(With<uint64_t>(good, 16, UINT64_MAX), TARN_BAD_FORMAT, "its header says 18446744073709551615");
  refused(With<uint64_t>(good, 56, 151), TARN_BAD_FORMAT, "tokens is 151, 0 to 150 expected");
  refused(With<uint64_t>(good, 72, 64), TARN_INVALID_ARGUMENT, "state is 64");
  refused(With<uint32_t>(good, kHeaderBytes + 4, 13), TARN_BAD_FORMAT, "tokens of source 1 are 13, 0 to 12 expected");
  // A block more or less than there are.
  const size_t map = kHeaderBytes + 2 * sizeof(uint32_t);
  refused(With<uint8_t>(good, map, static_cast<uint8_t>(good[map] ^ 1)), TARN_BAD_FORMAT, "its map of blocks says");
  Bytes longer = good;
  longer.resize(longer.size() + 64);
  refused(With<uint64_t>(longer, 16, longer.size()), TARN_BAD_FORMAT, "its map of blocks says " + size);
  // A whole snapshot by all sums, but for a smaller state.
  Bytes shorter(good.begin(), good.begin() + kHeaderBytes + kDigestBytes);
  refused(With<uint64_t>(shorter, 16, shorter.size()), TARN_BAD_FORMAT, "expected at least for such a session");
}

// Where a model has no bound, positions still stay within what the ops can compute with.
TEST(Snapshot, PositionsHaveAnEnd) {
  for (const test::SystemCase& system : test::kMoreSystems) {
    SCOPED_TRACE(system.name);
    const Loaded model(test::ConfigText(system.attention, "sinusoidal", system.heads));
    const SessionPointer session = model.New({1, 20, 1, 1});
    Feed(session.get(), 0, 10);
    const Bytes good = Save(*session);
    ExpectRefused(session.get(), With<uint64_t>(good, 56, (uint64_t{1} << 62) + 1), TARN_BAD_FORMAT,
                  "tokens is 4611686018427387905");
    if (session->instance().program(Stage::kDecode)->bound().op != nullptr) continue;
    Restore(session.get(), With<uint64_t>(good, 56, uint64_t{1} << 62));
    Feed(session.get(), 10, 20);
    EXPECT_EQ(session->instance().tokens_seen(), (uint64_t{1} << 62) + 20);
  }
}

}  // namespace
}  // namespace tarn
