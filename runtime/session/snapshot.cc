#include "runtime/session/snapshot.h"

#include <algorithm>
#include <cstring>

#include "core/arith.h"
#include "runtime/model/digest.h"

namespace tarn {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'S', 'N', 'P', '\r', '\n', 0x1A, '\n'};
constexpr uint32_t kVersion = 1;
constexpr size_t kFingerprintBytes = 32;
constexpr size_t kBlockBytes = kAlignment;
// More than any session will have seen, and low enough that no position that an op computes from it overflows.
constexpr uint64_t kMostTokens = uint64_t{1} << 62;

// Little-endian, as the platform is.
struct Header {
  uint8_t magic[8];
  uint32_t version;
  uint32_t sequences;
  uint64_t snapshot_bytes;
  uint8_t fingerprint[kFingerprintBytes];
  uint64_t tokens;       // that each sequence has seen
  uint32_t sources;      // 0: the model decodes from none
  uint32_t source_rows;  // max_source, where the size of a state depends on it; else 0
  uint64_t state_bytes;  // a multiple of kBlockBytes
};
static_assert(sizeof(Header) == 80, "the header is written and read as bytes");
constexpr size_t kLeastBytes = sizeof(Header) + sizeof(Digest);

// f(block) for every block of every state, in order; the last block of a state may be shorter.
template <typename F>
void ForEachBlock(const Instance& instance, const F& f) {
  for (uint32_t i = 0; i < instance.state_count(); ++i) {
    const Span<uint8_t> state = instance.state_bytes(i);
    for (size_t at = 0; at < state.size(); at += kBlockBytes) f(state.subspan(at, std::min(kBlockBytes, state.size() - at)));
  }
}

size_t StateBlocks(const Instance& instance) {
  size_t blocks = 0;
  for (uint32_t i = 0; i < instance.state_count(); ++i) blocks += (instance.state_bytes(i).size() + kBlockBytes - 1) / kBlockBytes;
  return blocks;
}

// Where everything lies, which follows from the shape of the session and the number of blocks.
struct Layout {
  Layout(const Instance& instance, uint64_t used_blocks)
      : blocks(StateBlocks(instance)),
        map(sizeof(Header) + instance.source_tokens().size() * sizeof(uint32_t)),
        first_block(map + (blocks + 7) / 8),
        digest(first_block + used_blocks * kBlockBytes) {}

  size_t blocks;  // of the state; the map has a bit for each
  uint64_t map;
  uint64_t first_block;
  uint64_t digest;
  uint64_t end() const { return digest + sizeof(Digest); }
};

bool IsZero(Span<const uint8_t> block) {
  uint64_t words[kBlockBytes / sizeof(uint64_t)] = {};
  std::memcpy(words, block.data(), block.size());
  uint64_t any = 0;
  for (const uint64_t word : words) any |= word;
  return any == 0;
}

uint64_t CountUsed(const Instance& instance) {
  uint64_t used = 0;
  ForEachBlock(instance, [&](Span<uint8_t> block) { used += !IsZero(block); });
  return used;
}

bool IsSet(const uint8_t* map, size_t block) { return (map[block / 8] >> (block % 8) & 1) != 0; }

uint64_t CountSet(const uint8_t* map, size_t blocks) {
  uint64_t set = 0;
  for (size_t i = 0; i < blocks; ++i) set += IsSet(map, i);
  return set;
}

uint32_t SourceRows(const Model& model, const Instance& instance) {
  for (uint32_t i = 0; i < model.graph().states()->size(); ++i) {
    if (model.state(i).source_axis >= 0) return instance.limits().max_source;
  }
  return 0;
}

// All but snapshot_bytes.
Header MakeHeader(const Model& model, const Instance& instance) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.sequences = instance.limits().batch;
  std::memcpy(header.fingerprint, model.fingerprint(), kFingerprintBytes);
  header.tokens = instance.tokens_seen();
  header.sources = static_cast<uint32_t>(instance.source_tokens().size());
  header.source_rows = SourceRows(model, instance);
  header.state_bytes = StateBlocks(instance) * kBlockBytes;
  return header;
}

// ---- Checks ----

template <size_t kBytes>
struct Hex {
  explicit Hex(const uint8_t (&bytes)[kBytes]) {
    for (size_t i = 0; i < kBytes; ++i) {
      text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
      text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
  }
  char text[2 * kBytes + 1] = {};
};

Status CheckField(const char* field, uint64_t found, uint64_t wanted, const char* words) {
  if (found == wanted) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s is %llu, %llu expected: %s", field, static_cast<unsigned long long>(found),
               static_cast<unsigned long long>(wanted), words);
}

// That these are bytes which SaveSnapshot wrote.
Result<Header> ReadHeader(Span<const uint8_t> memory) {
  if (memory.size() < kLeastBytes) {
    return Error(TARN_BAD_FORMAT, "size is %zu bytes, %zu expected at least", memory.size(), kLeastBytes);
  }
  Header header;
  std::memcpy(&header, memory.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return Error(TARN_BAD_FORMAT, "magic is %s, %s expected: these bytes are no snapshot", Hex(header.magic).text,
                 Hex(kMagic).text);
  }
  if (header.version != kVersion) {
    return Error(TARN_UNSUPPORTED, "version is %u, %u expected: another library wrote it", header.version, kVersion);
  }
  if (header.snapshot_bytes < kLeastBytes || header.snapshot_bytes > memory.size()) {
    return Error(TARN_BAD_FORMAT, "size is %zu bytes, its header says %llu: it is cut or damaged", memory.size(),
                 static_cast<unsigned long long>(header.snapshot_bytes));
  }
  const size_t hashed = static_cast<size_t>(header.snapshot_bytes) - sizeof(Digest);
  Digest wanted;
  std::memcpy(&wanted, memory.data() + hashed, sizeof(wanted));
  const Digest found = DigestOf(memory.subspan(0, hashed));
  if (!(found == wanted)) {
    return Error(TARN_CHECKSUM, "XXH3-128 is %s, %s expected: it is damaged", Hex(found.bytes).text, Hex(wanted.bytes).text);
  }
  return header;
}

// That it is one of this model and of a session like this one.
Status CheckShape(const Header& found, const Header& wanted) {
  if (std::memcmp(found.fingerprint, wanted.fingerprint, kFingerprintBytes) != 0) {
    return Error(TARN_INVALID_ARGUMENT, "fingerprint is %s, %s expected: it is of another model", Hex(found.fingerprint).text,
                 Hex(wanted.fingerprint).text);
  }
  TARN_RETURN_IF_ERROR(CheckField("sequences", found.sequences, wanted.sequences, "batch * beams of the session"));
  TARN_RETURN_IF_ERROR(CheckField("sources", found.sources, wanted.sources, "batch of the session"));
  TARN_RETURN_IF_ERROR(CheckField("max_source", found.source_rows, wanted.source_rows, "the session was created for that"));
  return CheckField("state", found.state_bytes, wanted.state_bytes, "bytes of the session's states");
}

// That it says what it has. Hashes are no secret: from here on the bytes may be anybody's.
Status CheckMap(const Header& header, const Instance& instance, const uint8_t* snapshot) {
  const Layout least(instance, 0);
  if (header.snapshot_bytes < least.end()) {
    return Error(TARN_BAD_FORMAT, "size is %llu bytes, %llu expected at least for such a session",
                 static_cast<unsigned long long>(header.snapshot_bytes), static_cast<unsigned long long>(least.end()));
  }
  const Layout layout(instance, CountSet(snapshot + least.map, least.blocks));
  if (header.snapshot_bytes != layout.end()) {
    return Error(TARN_BAD_FORMAT, "size is %llu bytes, its map of blocks says %llu",
                 static_cast<unsigned long long>(header.snapshot_bytes), static_cast<unsigned long long>(layout.end()));
  }
  return Ok();
}

// The ops index by these counts.
Status CheckTokens(const LoadedModel& model, const Header& header, const Instance& instance, const uint8_t* source_tokens) {
  const uint64_t bound = model.bound(Stage::kDecode).tokens;
  const uint64_t most = model.model().program(Stage::kDecode) == nullptr ? 0 : bound < kMostTokens ? bound : kMostTokens;
  if (header.tokens > most) {
    return Error(TARN_BAD_FORMAT, "tokens is %llu, 0 to %llu expected", static_cast<unsigned long long>(header.tokens),
                 static_cast<unsigned long long>(most));
  }
  const uint64_t longest = header.source_rows > 0 ? header.source_rows : model.bound(Stage::kEncode).tokens;
  for (size_t i = 0; i < instance.source_tokens().size(); ++i) {
    uint32_t tokens;
    std::memcpy(&tokens, source_tokens + i * sizeof(tokens), sizeof(tokens));
    if (tokens > longest) {
      return Error(TARN_BAD_FORMAT, "tokens of source %zu are %u, 0 to %llu expected", i, tokens,
                   static_cast<unsigned long long>(longest));
    }
  }
  return Ok();
}

Status Check(const LoadedModel& model, Span<const uint8_t> memory, const Instance& instance, Header* header) {
  TARN_ASSIGN_OR_RETURN(*header, ReadHeader(memory));
  TARN_RETURN_IF_ERROR(CheckShape(*header, MakeHeader(model.model(), instance)));
  TARN_RETURN_IF_ERROR(CheckMap(*header, instance, memory.data()));
  return CheckTokens(model, *header, instance, memory.data() + sizeof(Header));
}

}  // namespace

uint64_t SnapshotBytes(const Instance& instance) { return Layout(instance, CountUsed(instance)).end(); }

Status SaveSnapshot(const LoadedModel& model, const Instance& instance, Span<uint8_t> memory) {
  Header header = MakeHeader(model.model(), instance);
  const Layout layout(instance, CountUsed(instance));
  header.snapshot_bytes = layout.end();
  if (memory.size() < header.snapshot_bytes) {
    return Error(TARN_BUFFER_TOO_SMALL, "snapshot memory has %zu bytes, %llu are needed", memory.size(),
                 static_cast<unsigned long long>(header.snapshot_bytes));
  }
  uint8_t* const snapshot = memory.data();
  std::memcpy(snapshot, &header, sizeof(header));
  const Span<const uint32_t> source_tokens = instance.source_tokens();
  if (!source_tokens.empty()) {
    std::memcpy(snapshot + sizeof(header), source_tokens.data(), source_tokens.size() * sizeof(uint32_t));
  }
  uint8_t* const map = snapshot + layout.map;
  uint8_t* next = snapshot + layout.first_block;
  std::memset(map, 0, static_cast<size_t>(layout.first_block - layout.map));
  size_t i = 0;
  ForEachBlock(instance, [&](Span<uint8_t> block) {
    const size_t number = i++;
    if (IsZero(block)) return;
    map[number / 8] = static_cast<uint8_t>(map[number / 8] | 1u << (number % 8));
    std::memcpy(next, block.data(), block.size());
    std::memset(next + block.size(), 0, kBlockBytes - block.size());
    next += kBlockBytes;
  });
  const Digest digest = DigestOf(memory.subspan(0, static_cast<size_t>(layout.digest)));
  std::memcpy(next, &digest, sizeof(digest));
  return Ok();
}

Status RestoreSnapshot(const LoadedModel& model, Span<const uint8_t> memory, Instance* instance) {
  Header header;
  TARN_RETURN_IF_ERROR(Check(model, memory, *instance, &header).In("snapshot"));
  const Layout layout(*instance, 0);
  instance->Restore(header.tokens, memory.data() + sizeof(header));
  const uint8_t* next = memory.data() + layout.first_block;
  const uint8_t* const end = memory.data() + header.snapshot_bytes - sizeof(Digest);
  size_t i = 0;
  ForEachBlock(*instance, [&](Span<uint8_t> block) {
    // The map has as many bits as there are blocks, unless somebody writes to it just now.
    const size_t number = i++;
    if (next != end && IsSet(memory.data() + layout.map, number)) {
      std::memcpy(block.data(), next, block.size());
      next += kBlockBytes;
    } else {
      std::memset(block.data(), 0, block.size());
    }
  });
  return Ok();
}

}  // namespace tarn
