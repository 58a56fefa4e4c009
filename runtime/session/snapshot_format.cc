#include "runtime/session/snapshot_format.h"

#include <algorithm>
#include <cstring>

#include "core/visible.h"
#include "runtime/model/digest.h"

namespace tarn {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'S', 'N', 'P', '\r', '\n', 0x1A, '\n'};
constexpr size_t kLeastBytes = sizeof(SnapshotHeader) + sizeof(Digest);

}  // namespace

SnapshotLayout::SnapshotLayout(const SnapshotHeader& header, uint64_t used_blocks)
    : sequence_tokens(sizeof(SnapshotHeader) + header.sources * uint64_t{sizeof(uint32_t)}),
      base(sequence_tokens + (header.version == kSnapshotLockstep ? 0 : header.sequences * uint64_t{sizeof(uint64_t)})),
      map(base + (header.version == kSnapshotDelta ? sizeof(Digest) : 0)),
      blocks(header.state_bytes / kSnapshotBlockBytes),
      first_block(map + (blocks + 7) / 8),
      digest(first_block + used_blocks * kSnapshotBlockBytes),
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
  if (header.version < kSnapshotLockstep || header.version > kSnapshotDelta) {
    return Error(TARN_UNSUPPORTED, "version is %u, %u to %u expected: a newer library wrote it, use that", header.version,
                 kSnapshotLockstep, kSnapshotDelta);
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
  const SnapshotLayout least(header, 0);
  if (header.snapshot_bytes >= least.end) return Ok();
  return Error(TARN_BAD_FORMAT, "size is %llu bytes, %llu expected at least for such a session",
               static_cast<unsigned long long>(header.snapshot_bytes), static_cast<unsigned long long>(least.end));
}

Status CheckSnapshotMap(const SnapshotHeader& header, const uint8_t* snapshot) {
  TARN_RETURN_IF_ERROR(CheckSnapshotSize(header));
  const SnapshotLayout least(header, 0);
  const SnapshotLayout layout(header, CountSnapshotBlocks(snapshot + least.map, least.blocks));
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
  std::memcpy(&digest, snapshot + SnapshotLayout(header, 0).base, sizeof(digest));
  return digest;
}

Status ExpectNoDelta(const SnapshotHeader& header, const uint8_t* snapshot) {
  if (header.version != kSnapshotDelta) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "it is a delta snapshot: only with its base, whose XXH3-128 is %s, is it a state",
               HexText(SnapshotBase(header, snapshot).bytes).text);
}

uint64_t SnapshotSequenceTokens(const SnapshotHeader& header, const uint8_t* snapshot, uint32_t index) {
  uint64_t tokens = header.tokens;
  if (header.version != kSnapshotLockstep) {
    std::memcpy(&tokens, snapshot + SnapshotLayout(header, 0).sequence_tokens + index * sizeof(tokens), sizeof(tokens));
  }
  return tokens;
}

uint32_t SnapshotSourceTokens(const uint8_t* snapshot, uint32_t index) {
  uint32_t tokens;
  std::memcpy(&tokens, snapshot + sizeof(SnapshotHeader) + index * sizeof(tokens), sizeof(tokens));
  return tokens;
}

uint64_t CountSnapshotBlocks(const uint8_t* map, uint64_t blocks) {
  uint64_t count = 0, block = 0;
  for (; block + 64 <= blocks; block += 64) {
    uint64_t bits;
    std::memcpy(&bits, map + block / 8, sizeof(bits));
    count += static_cast<uint64_t>(__builtin_popcountll(bits));
  }
  for (; block < blocks; ++block) count += HasSnapshotBlock(map, block);
  return count;
}

SnapshotBlocks::SnapshotBlocks(const SnapshotHeader& header, const uint8_t* snapshot)
    : map_(snapshot + SnapshotLayout(header, 0).map),
      next_(snapshot + SnapshotLayout(header, 0).first_block),
      end_(snapshot + header.snapshot_bytes - sizeof(Digest)) {}

Status ReadSnapshotStates(const SnapshotHeader& header, const uint8_t* snapshot, uint64_t offset, Span<uint8_t> bytes) {
  if (offset > header.state_bytes || bytes.size() > header.state_bytes - offset) {
    return Error(TARN_INVALID_ARGUMENT, "%zu bytes of the states from %llu on, which have %llu", bytes.size(),
                 static_cast<unsigned long long>(offset), static_cast<unsigned long long>(header.state_bytes));
  }
  TARN_RETURN_IF_ERROR(ExpectNoDelta(header, snapshot));
  const SnapshotLayout layout(header, 0);
  const uint8_t* const map = snapshot + layout.map;
  const uint8_t* const stored = snapshot + layout.first_block;
  const uint64_t stored_blocks = (header.snapshot_bytes - layout.end) / kSnapshotBlockBytes;
  uint64_t block = offset / kSnapshotBlockBytes;
  uint64_t next = CountSnapshotBlocks(map, block);
  size_t skipped = static_cast<size_t>(offset % kSnapshotBlockBytes);
  for (size_t at = 0; at < bytes.size(); ++block, skipped = 0) {
    const size_t count = std::min(bytes.size() - at, kSnapshotBlockBytes - skipped);
    // The map has as many bits as there are blocks, unless somebody writes to it just now.
    if (next < stored_blocks && HasSnapshotBlock(map, block)) {
      std::memcpy(bytes.data() + at, stored + next++ * kSnapshotBlockBytes + skipped, count);
    } else {
      std::memset(bytes.data() + at, 0, count);
    }
    at += count;
  }
  return Ok();
}

}  // namespace tarn
