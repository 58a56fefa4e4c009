#include "runtime/session/snapshot_format.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "core/visible.h"
#include "runtime/model/digest.h"

namespace tarn {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'S', 'N', 'P', '\r', '\n', 0x1A, '\n'};
constexpr size_t kLeastBytes = sizeof(SnapshotHeader) + sizeof(Digest);

uint64_t CountBits(const uint8_t* map, uint64_t bits) {
  uint64_t count = 0, bit = 0;
  for (; bit + 64 <= bits; bit += 64) {
    uint64_t word;
    std::memcpy(&word, map + bit / 8, sizeof(word));
    count += static_cast<uint64_t>(__builtin_popcountll(word));
  }
  for (; bit < bits; ++bit) count += HasSnapshotBlock(map, bit);
  return count;
}

void Restore(const uint8_t* bytes, uint8_t* block) {
  RoundedBlock rounded;
  float x[kSnapshotBlockNumbers];
  std::memcpy(&rounded, bytes, sizeof(rounded));
  for (size_t i = 0; i < kSnapshotBlockNumbers; ++i) x[i] = rounded.scale * static_cast<float>(rounded.q[i]);
  std::memcpy(block, x, sizeof(x));
}

}  // namespace

bool RoundBlock(const uint8_t* block, RoundedBlock* rounded) {
  float x[kSnapshotBlockNumbers];
  std::memcpy(x, block, sizeof(x));
  float largest = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) return false;
    largest = std::max(largest, std::fabs(value));
  }
  rounded->scale = largest / 127;
  if (rounded->scale < FLT_MIN) return false;
  for (size_t i = 0; i < kSnapshotBlockNumbers; ++i) {
    rounded->q[i] = static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, std::nearbyint(x[i] / rounded->scale))));
  }
  return true;
}

SnapshotLayout::SnapshotLayout(const SnapshotHeader& header, const SnapshotBlockCounts& used)
    : sequence_tokens(sizeof(SnapshotHeader) + header.sources * uint64_t{sizeof(uint32_t)}),
      base(sequence_tokens + (header.version == kSnapshotLockstep ? 0 : header.sequences * uint64_t{sizeof(uint64_t)})),
      map(base + (header.version == kSnapshotDelta ? sizeof(Digest) : 0)),
      rounded_map(map + (header.state_bytes / kSnapshotBlockBytes + 7) / 8),
      blocks(header.state_bytes / kSnapshotBlockBytes),
      first_block(rounded_map + (header.version == kSnapshotCompact ? (used.all() + 7) / 8 : 0)),
      digest(first_block + used.bytes()),
      end(digest + sizeof(Digest)) {}

void BeginSnapshotHeader(uint32_t version, SnapshotHeader* header) {
  std::memcpy(header->magic, kMagic, sizeof(kMagic));
  header->version = version;
}

void WriteSnapshotDigest(Span<uint8_t> snapshot) {
  const size_t hashed = snapshot.size() - sizeof(Digest);
  const Digest digest = DigestOf(snapshot.subspan(0, hashed));
  std::memcpy(snapshot.data() + hashed, &digest, sizeof(digest));
}

// "": nothing that is known.
static const char* WhatElse(const uint8_t* magic) {
  if (std::memcmp(magic, "TARN", 4) == 0) return " but a model";
  if (std::memcmp(magic, "TPRM", 4) == 0) return " but a file of --prompt-cache: give its directory to that option";
  return LooksLikeText(magic, 8) ? " but a text, perhaps the page of an error" : "";
}

Result<SnapshotHeader> ReadSnapshotHeader(Span<const uint8_t> memory) {
  if (memory.size() < kLeastBytes) {
    return Error(TARN_BAD_FORMAT, "size is %zu bytes, %zu expected at least: it is cut, or no snapshot", memory.size(),
                 kLeastBytes);
  }
  SnapshotHeader header;
  std::memcpy(&header, memory.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return Error(TARN_BAD_FORMAT, "magic is %s, %s expected: these bytes are no snapshot%s", HexText(header.magic).text,
                 HexText(kMagic).text, WhatElse(header.magic));
  }
  if (header.version < kSnapshotLockstep || header.version > kSnapshotCompact) {
    return Error(TARN_UNSUPPORTED, "version is %u, %u to %u expected: a newer library wrote it, or it is damaged", header.version,
                 kSnapshotLockstep, kSnapshotCompact);
  }
  if (header.snapshot_bytes < kLeastBytes || header.snapshot_bytes > memory.size()) {
    return Error(TARN_BAD_FORMAT, "size is %zu bytes, its header says %llu: it is cut or damaged", memory.size(),
                 static_cast<unsigned long long>(header.snapshot_bytes));
  }
  return header;
}

Status CheckSnapshotDigest(const SnapshotHeader& header, Span<const uint8_t> memory) {
  const Digest wanted = SnapshotDigest(header, memory.data());
  const Digest found = DigestOf(memory.subspan(0, static_cast<size_t>(header.snapshot_bytes) - sizeof(Digest)));
  if (found == wanted) return Ok();
  return Error(TARN_CHECKSUM, "XXH3-128 is %s, %s expected: it is damaged", HexText(found.bytes).text, HexText(wanted.bytes).text);
}

Status CheckSnapshotSize(const SnapshotHeader& header) {
  if (header.state_bytes % kSnapshotBlockBytes != 0) {
    return Error(TARN_BAD_FORMAT, "state is %llu bytes, a multiple of %zu expected",
                 static_cast<unsigned long long>(header.state_bytes), kSnapshotBlockBytes);
  }
  const SnapshotLayout least(header, {});
  if (header.snapshot_bytes >= least.end) return Ok();
  return Error(TARN_BAD_FORMAT, "size is %llu bytes, %llu expected at least for such a session",
               static_cast<unsigned long long>(header.snapshot_bytes), static_cast<unsigned long long>(least.end));
}

Status CheckSnapshotMap(const SnapshotHeader& header, const uint8_t* snapshot) {
  TARN_RETURN_IF_ERROR(CheckSnapshotSize(header));
  const SnapshotLayout least(header, {});
  const SnapshotLayout layout(header, CountSnapshotBlocks(header, snapshot, least.blocks));
  if (header.snapshot_bytes == layout.end) return Ok();
  return Error(TARN_BAD_FORMAT, "size is %llu bytes, its map of blocks says %llu",
               static_cast<unsigned long long>(header.snapshot_bytes), static_cast<unsigned long long>(layout.end));
}

Digest SnapshotDigest(const SnapshotHeader& header, const uint8_t* snapshot) {
  Digest digest;
  std::memcpy(&digest, snapshot + header.snapshot_bytes - sizeof(digest), sizeof(digest));
  return digest;
}

Digest SnapshotBase(const SnapshotHeader& header, const uint8_t* snapshot) {
  Digest digest;
  std::memcpy(&digest, snapshot + SnapshotLayout(header, {}).base, sizeof(digest));
  return digest;
}

Status ExpectNoDelta(const SnapshotHeader& header, const uint8_t* snapshot) {
  if (header.version != kSnapshotDelta) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "it is a delta snapshot, a whole one expected: it needs its base, whose XXH3-128 is %s",
               HexText(SnapshotBase(header, snapshot).bytes).text);
}

uint64_t SnapshotSequenceTokens(const SnapshotHeader& header, const uint8_t* snapshot, uint32_t index) {
  uint64_t tokens = header.tokens;
  if (header.version != kSnapshotLockstep) {
    std::memcpy(&tokens, snapshot + SnapshotLayout(header, {}).sequence_tokens + index * sizeof(tokens), sizeof(tokens));
  }
  return tokens;
}

uint32_t SnapshotSourceTokens(const uint8_t* snapshot, uint32_t index) {
  uint32_t tokens;
  std::memcpy(&tokens, snapshot + sizeof(SnapshotHeader) + index * sizeof(tokens), sizeof(tokens));
  return tokens;
}

SnapshotBlockCounts CountSnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t blocks) {
  const SnapshotLayout layout(header, {});
  SnapshotBlockCounts counts;
  counts.whole = CountBits(snapshot + layout.map, blocks);
  if (header.version != kSnapshotCompact) return counts;
  const uint64_t room = header.snapshot_bytes - sizeof(Digest) - layout.rounded_map;  // bytes: the map may say anything
  counts.rounded = CountBits(snapshot + layout.rounded_map, std::min(counts.whole, 8 * room));
  counts.whole -= counts.rounded;
  return counts;
}

SnapshotBlocks::SnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot) : SnapshotBlocks(header, snapshot, 0) {}

SnapshotBlocks::SnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t number)
    : map_(snapshot + SnapshotLayout(header, {}).map), end_(snapshot + header.snapshot_bytes - sizeof(Digest)), number_(number) {
  SnapshotLayout layout(header, {});
  if (header.version == kSnapshotCompact) {
    layout = SnapshotLayout(header, CountSnapshotBlocks(header, snapshot, layout.blocks));
    rounded_map_ = snapshot + layout.rounded_map;
  }
  const SnapshotBlockCounts before = CountSnapshotBlocks(header, snapshot, number);
  stored_ = before.all();
  next_ = snapshot + std::min(layout.first_block + before.bytes(), header.snapshot_bytes - sizeof(Digest));
}

const uint8_t* SnapshotBlocks::Next() {
  if (next_ == end_) return nullptr;
  const uint64_t number = number_++;
  if (!HasSnapshotBlock(map_, number)) return nullptr;
  const uint64_t stored = stored_++;
  const bool is_rounded =
      rounded_map_ != nullptr && stored / 8 < static_cast<uint64_t>(end_ - rounded_map_) && HasSnapshotBlock(rounded_map_, stored);
  const uint8_t* const block = next_;
  const size_t bytes = is_rounded ? sizeof(RoundedBlock) : kSnapshotBlockBytes;
  if (static_cast<size_t>(end_ - next_) < bytes) {
    next_ = end_;
    return nullptr;
  }
  next_ += bytes;
  if (!is_rounded) return block;
  Restore(block, block_);
  return block_;
}

Status ReadSnapshotStates(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t offset, Span<uint8_t> bytes) {
  if (offset > header.state_bytes || bytes.size() > header.state_bytes - offset) {
    return Error(TARN_INVALID_ARGUMENT, "%zu bytes of the states from %llu on, which have %llu", bytes.size(),
                 static_cast<unsigned long long>(offset), static_cast<unsigned long long>(header.state_bytes));
  }
  TARN_RETURN_IF_ERROR(ExpectNoDelta(header, snapshot));
  SnapshotBlocks blocks(header, snapshot, offset / kSnapshotBlockBytes);
  size_t skipped = static_cast<size_t>(offset % kSnapshotBlockBytes);
  for (size_t at = 0; at < bytes.size(); skipped = 0) {
    const size_t count = std::min(bytes.size() - at, kSnapshotBlockBytes - skipped);
    if (const uint8_t* const block = blocks.Next(); block != nullptr) {
      std::memcpy(bytes.data() + at, block + skipped, count);
    } else {
      std::memset(bytes.data() + at, 0, count);
    }
    at += count;
  }
  return Ok();
}

}  // namespace tarn
