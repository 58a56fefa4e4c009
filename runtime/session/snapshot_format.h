// What the bytes of a snapshot say, without a model or a session: README.md has the table.
//
//   snapshot: [ header | tokens of each source | tokens of each sequence (from version 2 on) | XXH3-128 of the base (version 3) |
//               map of blocks | map of rounded blocks (version 4) | blocks | XXH3-128 ]
#ifndef TARN_RUNTIME_SESSION_SNAPSHOT_FORMAT_H_
#define TARN_RUNTIME_SESSION_SNAPSHOT_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "core/arith.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/model/digest.h"

namespace tarn {

constexpr size_t kFingerprintBytes = 32;
constexpr size_t kSnapshotBlockBytes = kAlignment;
// Versions. All sequences have seen as many tokens; or each has its own number of them; or it is a delta snapshot, which has the
// blocks that differ from those of another snapshot, its base; or a compact one, some of whose blocks are rounded.
constexpr uint32_t kSnapshotLockstep = 1;
constexpr uint32_t kSnapshotSequences = 2;
constexpr uint32_t kSnapshotDelta = 3;
constexpr uint32_t kSnapshotCompact = 4;

// Bytes as hex digits, for messages.
template <size_t kBytes>
struct HexText {
  explicit HexText(const uint8_t (&bytes)[kBytes]) {
    for (size_t i = 0; i < kBytes; ++i) {
      text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
      text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
  }
  char text[2 * kBytes + 1] = {};
};

// Little-endian, as the platform is.
struct SnapshotHeader {
  uint8_t magic[8];
  uint32_t version;
  uint32_t sequences;
  uint64_t snapshot_bytes;
  uint8_t fingerprint[kFingerprintBytes];
  uint64_t tokens;       // that each sequence has seen; from version 2 on: the one that has seen most
  uint32_t sources;      // 0: the model decodes from none
  uint32_t source_rows;  // max_source, where the size of a state depends on it; else 0
  uint64_t state_bytes;  // a multiple of kSnapshotBlockBytes
};
static_assert(sizeof(SnapshotHeader) == 80, "the header is written and read as bytes");

// A block of 16 f32 numbers as int8, x = scale q: the largest |x| has |q| = 127.
constexpr size_t kSnapshotBlockNumbers = kSnapshotBlockBytes / sizeof(float);
struct RoundedBlock {
  float scale;
  int8_t q[kSnapshotBlockNumbers];
};
static_assert(sizeof(RoundedBlock) == 20, "the block is written and read as bytes");
// False: a number is not finite, or the scale would be denormal, and the block stays as it is.
bool RoundBlock(const uint8_t* block, RoundedBlock* rounded);

// How many blocks a snapshot has.
struct SnapshotBlockCounts {
  uint64_t whole = 0, rounded = 0;
  uint64_t all() const { return whole + rounded; }
  uint64_t bytes() const { return whole * kSnapshotBlockBytes + rounded * sizeof(RoundedBlock); }
};

// Where everything lies.
struct SnapshotLayout {
  SnapshotLayout(const SnapshotHeader& header, const SnapshotBlockCounts& used);

  uint64_t sequence_tokens;  // from version 2 on: u64 for each sequence
  uint64_t base;             // version 3: the digest that its base ends with
  uint64_t map;
  uint64_t rounded_map;  // version 4: a bit for each block that is there; it is set if the block is rounded
  uint64_t blocks;       // of the state; the map has a bit for each
  uint64_t first_block;
  uint64_t digest;
  uint64_t end;
};

// Magic and version.
void BeginSnapshotHeader(uint32_t version, SnapshotHeader* header);
// The last bytes of a snapshot that is whole otherwise.
void WriteSnapshotDigest(Span<uint8_t> snapshot);

// That memory begins with a snapshot which nobody has cut. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED.
Result<SnapshotHeader> ReadSnapshotHeader(Span<const uint8_t> memory);
// That its bytes are those which were written. Errors: TARN_CHECKSUM.
Status CheckSnapshotDigest(const SnapshotHeader& header, Span<const uint8_t> memory);
// That it has room for its map of blocks, and for the blocks of which the map speaks: hashes are no secret. Errors:
// TARN_BAD_FORMAT.
Status CheckSnapshotSize(const SnapshotHeader& header);
Status CheckSnapshotMap(const SnapshotHeader& header, const uint8_t* snapshot);

// The digest that a snapshot ends with, and that of the base of a delta snapshot; both of a checked size.
Digest SnapshotDigest(const SnapshotHeader& header, const uint8_t* snapshot);
Digest SnapshotBase(const SnapshotHeader& header, const uint8_t* snapshot);
// Errors: TARN_INVALID_ARGUMENT where it is a delta snapshot.
Status ExpectNoDelta(const SnapshotHeader& header, const uint8_t* snapshot);

// Of sequence and source number `index`, of a snapshot whose size has been checked.
uint64_t SnapshotSequenceTokens(const SnapshotHeader& header, const uint8_t* snapshot, uint32_t index);
uint32_t SnapshotSourceTokens(const uint8_t* snapshot, uint32_t index);

inline bool HasSnapshotBlock(const uint8_t* map, uint64_t block) { return (map[block / 8] >> (block % 8) & 1) != 0; }
// Of the first `blocks` blocks of a snapshot, how many are there.
SnapshotBlockCounts CountSnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t blocks);

// The blocks of a checked snapshot, one after the other. Default-constructed: as if every block had been left out.
class SnapshotBlocks {
 public:
  SnapshotBlocks() = default;
  SnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot);
  // From block `number` on.
  SnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t number);
  // The next block, until the call after; nullptr: it was left out. Stays inside of the snapshot even if somebody writes to it just
  // now.
  const uint8_t* Next();

 private:
  const uint8_t* map_ = nullptr;
  const uint8_t* rounded_map_ = nullptr;  // nullptr: none is rounded
  uint64_t stored_ = 0;                   // blocks before the next one that are there
  uint8_t block_[kSnapshotBlockBytes];    // one that was rounded
  const uint8_t* next_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint64_t number_ = 0;
};

// Bytes [offset, offset + bytes.size()) of all states, one behind the other, each from a multiple of kSnapshotBlockBytes on. Header
// and map have been checked. Errors: TARN_INVALID_ARGUMENT (there are fewer; it is a delta snapshot).
Status ReadSnapshotStates(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t offset, Span<uint8_t> bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_SNAPSHOT_FORMAT_H_
