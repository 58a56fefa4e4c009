#include "runtime/session/snapshot.h"

#include <algorithm>
#include <cstring>

#include "core/arith.h"
#include "runtime/model/digest.h"
#include "runtime/session/snapshot_format.h"

namespace tarn {
namespace {

// More than any session will have seen, and low enough that no position that an op computes from it overflows.
constexpr uint64_t kMostTokens = uint64_t{1} << 62;

// f(block) for every block of every state, in order; the last block of a state may be shorter.
template <typename F>
void ForEachBlock(const Instance& instance, const F& f) {
  for (uint32_t i = 0; i < instance.state_count(); ++i) {
    const Span<uint8_t> state = instance.state_bytes(i);
    for (size_t at = 0; at < state.size(); at += kSnapshotBlockBytes)
      f(state.subspan(at, std::min(kSnapshotBlockBytes, state.size() - at)));
  }
}

size_t StateBlocks(const Instance& instance) {
  size_t blocks = 0;
  for (uint32_t i = 0; i < instance.state_count(); ++i)
    blocks += (instance.state_bytes(i).size() + kSnapshotBlockBytes - 1) / kSnapshotBlockBytes;
  return blocks;
}

bool IsZero(Span<const uint8_t> block) {
  uint64_t words[kSnapshotBlockBytes / sizeof(uint64_t)] = {};
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

uint32_t SourceRows(const Model& model, const Instance& instance) {
  for (uint32_t i = 0; i < model.graph().states()->size(); ++i) {
    if (model.state(i).source_axis >= 0) return instance.limits().max_source;
  }
  return 0;
}

// All but snapshot_bytes.
SnapshotHeader MakeHeader(const Model& model, const Instance& instance) {
  SnapshotHeader header{};
  BeginSnapshotHeader(&header);
  header.sequences = instance.limits().batch;
  std::memcpy(header.fingerprint, model.fingerprint(), kFingerprintBytes);
  header.tokens = instance.tokens_seen();
  header.sources = static_cast<uint32_t>(instance.source_tokens().size());
  header.source_rows = SourceRows(model, instance);
  header.state_bytes = StateBlocks(instance) * kSnapshotBlockBytes;
  return header;
}

// ---- Checks ----

Status CheckField(const char* field, uint64_t found, uint64_t wanted, const char* words) {
  if (found == wanted) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s is %llu, %llu expected: %s", field, static_cast<unsigned long long>(found),
               static_cast<unsigned long long>(wanted), words);
}

// That it is one of this model and of a session like this one.
Status CheckShape(const SnapshotHeader& found, const SnapshotHeader& wanted) {
  if (std::memcmp(found.fingerprint, wanted.fingerprint, kFingerprintBytes) != 0) {
    return Error(TARN_INVALID_ARGUMENT, "fingerprint is %s, %s expected: it is of another model", HexText(found.fingerprint).text,
                 HexText(wanted.fingerprint).text);
  }
  TARN_RETURN_IF_ERROR(CheckField("sequences", found.sequences, wanted.sequences, "batch * beams of the session"));
  TARN_RETURN_IF_ERROR(CheckField("sources", found.sources, wanted.sources, "batch of the session"));
  TARN_RETURN_IF_ERROR(CheckField("max_source", found.source_rows, wanted.source_rows, "the session was created for that"));
  return CheckField("state", found.state_bytes, wanted.state_bytes, "bytes of the session's states");
}

// The ops index by these counts.
Status CheckTokens(const LoadedModel& model, const SnapshotHeader& header, const Instance& instance, const uint8_t* source_tokens) {
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

Status Check(const LoadedModel& model, Span<const uint8_t> memory, const Instance& instance, SnapshotHeader* header) {
  TARN_ASSIGN_OR_RETURN(*header, ReadSnapshotHeader(memory));
  TARN_RETURN_IF_ERROR(CheckSnapshotDigest(*header, memory));
  TARN_RETURN_IF_ERROR(CheckShape(*header, MakeHeader(model.model(), instance)));
  TARN_RETURN_IF_ERROR(CheckSnapshotMap(*header, memory.data()));
  return CheckTokens(model, *header, instance, memory.data() + sizeof(SnapshotHeader));
}

}  // namespace

uint64_t SnapshotBytes(const LoadedModel& model, const Instance& instance) {
  return SnapshotLayout(MakeHeader(model.model(), instance), CountUsed(instance)).end;
}

Status SaveSnapshot(const LoadedModel& model, const Instance& instance, Span<uint8_t> memory) {
  SnapshotHeader header = MakeHeader(model.model(), instance);
  const SnapshotLayout layout(header, CountUsed(instance));
  header.snapshot_bytes = layout.end;
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
    std::memset(next + block.size(), 0, kSnapshotBlockBytes - block.size());
    next += kSnapshotBlockBytes;
  });
  WriteSnapshotDigest(memory.subspan(0, static_cast<size_t>(layout.end)));
  return Ok();
}

Status RestoreSnapshot(const LoadedModel& model, Span<const uint8_t> memory, Instance* instance) {
  SnapshotHeader header;
  TARN_RETURN_IF_ERROR(Check(model, memory, *instance, &header).In("snapshot"));
  const SnapshotLayout layout(header, 0);
  instance->Restore(header.tokens, memory.data() + sizeof(header));
  const uint8_t* next = memory.data() + layout.first_block;
  const uint8_t* const end = memory.data() + header.snapshot_bytes - sizeof(Digest);
  size_t i = 0;
  ForEachBlock(*instance, [&](Span<uint8_t> block) {
    // The map has as many bits as there are blocks, unless somebody writes to it just now.
    const size_t number = i++;
    if (next != end && HasSnapshotBlock(memory.data() + layout.map, number)) {
      std::memcpy(block.data(), next, block.size());
      next += kSnapshotBlockBytes;
    } else {
      std::memset(block.data(), 0, block.size());
    }
  });
  return Ok();
}

}  // namespace tarn
