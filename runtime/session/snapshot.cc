#include "runtime/session/snapshot.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/model/digest.h"
#include "runtime/session/snapshot_format.h"

namespace tarn {
namespace {

// More than any session will have seen, and low enough that no position that an op computes from it overflows.
constexpr uint64_t kMostTokens = uint64_t{1} << 62;

// Of state `index`, what belongs to the scope.
Span<uint8_t> StateOf(const Model& model, const SnapshotScope& scope, uint32_t index) {
  const StateBuffer& state = scope.instance.state(index);
  const bool of_source = scope.sources > 0 && model.state(index).owner == format::Owner::Source;
  const uint32_t first = of_source ? scope.first_source : scope.first_sequence;
  const uint32_t count = of_source ? scope.sources : scope.sequences;
  return {state.bytes(first), static_cast<size_t>(state.bytes_per_sequence * count)};
}

// Whether a compact snapshot may round a state: a matrix of f32 for each head, but no scales of an int8 state.
bool MayRound(const StateView& state) {
  const std::string_view name = state.name, scales = "scales";
  const bool is_scales = name.size() >= scales.size() && name.substr(name.size() - scales.size()) == scales;
  return state.dtype == DType::kF32 && state.shape.rank == 3 && !is_scales;
}

// f(block, state) for every block of every state, in order; the last block of a state may be shorter.
template <typename F>
void ForEachBlock(const Model& model, const SnapshotScope& scope, const F& f) {
  for (uint32_t i = 0; i < scope.instance.state_count(); ++i) {
    const Span<uint8_t> state = StateOf(model, scope, i);
    for (size_t at = 0; at < state.size(); at += kSnapshotBlockBytes)
      f(state.subspan(at, std::min(kSnapshotBlockBytes, state.size() - at)), i);
  }
}

size_t StateBlocks(const Model& model, const SnapshotScope& scope) {
  size_t blocks = 0;
  for (uint32_t i = 0; i < scope.instance.state_count(); ++i)
    blocks += (StateOf(model, scope, i).size() + kSnapshotBlockBytes - 1) / kSnapshotBlockBytes;
  return blocks;
}

// That a block of a state is what a snapshot has; nullptr: zeros.
bool IsSame(Span<const uint8_t> block, const uint8_t* stored) {
  uint64_t here[kSnapshotBlockBytes / sizeof(uint64_t)] = {}, there[kSnapshotBlockBytes / sizeof(uint64_t)] = {};
  std::memcpy(here, block.data(), block.size());
  if (stored != nullptr) std::memcpy(there, stored, block.size());
  uint64_t any = 0;
  for (size_t i = 0; i < kSnapshotBlockBytes / sizeof(uint64_t); ++i) any |= here[i] ^ there[i];
  return any == 0;
}

// A block of a snapshot with this header that rounds it.
bool IsRounded(const Model& model, const SnapshotHeader& header, Span<const uint8_t> block, uint32_t state, RoundedBlock* rounded) {
  return header.version == kSnapshotCompact && block.size() == kSnapshotBlockBytes && MayRound(model.state(state)) &&
         RoundBlock(block.data(), rounded);
}

// The blocks that a snapshot has to have.
SnapshotBlockCounts CountUsed(const Model& model, const SnapshotScope& scope, const SnapshotHeader& header, SnapshotBlocks base) {
  SnapshotBlockCounts used;
  RoundedBlock rounded;
  ForEachBlock(model, scope, [&](Span<uint8_t> block, uint32_t state) {
    if (IsSame(block, base.Next())) return;
    ++(IsRounded(model, header, block, state, &rounded) ? used.rounded : used.whole);
  });
  return used;
}

uint32_t SourceRows(const Model& model, const Instance& instance) {
  for (uint32_t i = 0; i < model.graph().states()->size(); ++i) {
    if (model.state(i).source_axis >= 0) return instance.limits().max_source;
  }
  return 0;
}

// All but snapshot_bytes. Older libraries read what can be said in their version.
SnapshotHeader MakeHeader(const Model& model, const SnapshotScope& scope, const SnapshotKind& kind = {}) {
  SnapshotHeader header{};
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < scope.sequences; ++i) {
    const uint64_t tokens = scope.instance.tokens_seen(scope.first_sequence + i);
    header.tokens = std::max(header.tokens, tokens);
    least = std::min(least, tokens);
  }
  BeginSnapshotHeader(kind.base.data() != nullptr ? kSnapshotDelta
                      : kind.is_compact           ? kSnapshotCompact
                      : least == header.tokens    ? kSnapshotLockstep
                                                  : kSnapshotSequences,
                      &header);
  header.sequences = scope.sequences;
  std::memcpy(header.fingerprint, model.fingerprint(), kFingerprintBytes);
  header.sources = scope.sources;
  header.source_rows = SourceRows(model, scope.instance);
  header.state_bytes = StateBlocks(model, scope) * kSnapshotBlockBytes;
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

uint64_t LongestSource(const LoadedModel& model, const SnapshotHeader& header) {
  return header.source_rows > 0 ? header.source_rows : model.bound(Stage::kEncode).tokens;
}

// The ops index by these counts.
Status CheckTokens(const LoadedModel& model, const SnapshotHeader& header, const uint8_t* snapshot) {
  const uint64_t bound = model.bound(Stage::kDecode).tokens;
  const uint64_t most = model.model().program(Stage::kDecode) == nullptr ? 0 : bound < kMostTokens ? bound : kMostTokens;
  if (header.tokens > most) {
    return Error(TARN_BAD_FORMAT, "tokens is %llu, 0 to %llu expected", static_cast<unsigned long long>(header.tokens),
                 static_cast<unsigned long long>(most));
  }
  uint64_t most_seen = 0;
  for (uint32_t i = 0; i < header.sequences; ++i) most_seen = std::max(most_seen, SnapshotSequenceTokens(header, snapshot, i));
  if (most_seen != header.tokens) {
    return Error(TARN_BAD_FORMAT, "tokens is %llu, %llu expected: of the sequence that has seen most",
                 static_cast<unsigned long long>(header.tokens), static_cast<unsigned long long>(most_seen));
  }
  const uint64_t longest = LongestSource(model, header);
  for (uint32_t i = 0; i < header.sources; ++i) {
    const uint32_t tokens = SnapshotSourceTokens(snapshot, i);
    if (tokens > longest) {
      return Error(TARN_BAD_FORMAT, "tokens of source %u are %u, 0 to %llu expected", i, tokens,
                   static_cast<unsigned long long>(longest));
    }
  }
  return Ok();
}

Result<SnapshotHeader> Check(const LoadedModel& model, Span<const uint8_t> memory, const SnapshotScope& scope) {
  TARN_ASSIGN_OR_RETURN(const SnapshotHeader header, ReadSnapshotHeader(memory));
  TARN_RETURN_IF_ERROR(CheckSnapshotDigest(header, memory));
  TARN_RETURN_IF_ERROR(CheckShape(header, MakeHeader(model.model(), scope)));
  TARN_RETURN_IF_ERROR(CheckSnapshotMap(header, memory.data()));
  TARN_RETURN_IF_ERROR(CheckTokens(model, header, memory.data()));
  return header;
}

bool Overlap(Span<const uint8_t> a, Span<const uint8_t> b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data()), begin_b = reinterpret_cast<uintptr_t>(b.data());
  return begin_a < begin_b ? b.size() > 0 && a.size() > begin_b - begin_a : a.size() > 0 && b.size() > begin_a - begin_b;
}

// What a snapshot is a delta of.
struct Base {
  bool is_there = false;
  Digest digest = {};
  SnapshotBlocks blocks;
};

Result<Base> OpenBase(const LoadedModel& model, Span<const uint8_t> memory, const SnapshotScope& scope) {
  if (memory.data() == nullptr) return Base{};
  Result<SnapshotHeader> header = Check(model, memory, scope);
  if (!header.ok()) return header.status().In("base");
  TARN_RETURN_IF_ERROR(ExpectNoDelta(header.value(), memory.data()).In("base"));
  return Base{true, SnapshotDigest(header.value(), memory.data()), {header.value(), memory.data()}};
}

// That a snapshot belongs to the base, or to none.
Status CheckBase(const SnapshotHeader& header, const uint8_t* snapshot, const Base& base) {
  if (!base.is_there) return ExpectNoDelta(header, snapshot);
  if (header.version != kSnapshotDelta) {
    return Error(TARN_INVALID_ARGUMENT, "version is %u, %u expected: it is no delta snapshot and needs no base", header.version,
                 kSnapshotDelta);
  }
  const Digest wanted = SnapshotBase(header, snapshot);
  if (base.digest == wanted) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "XXH3-128 of the base is %s, %s expected: the delta was saved with another one",
               HexText(base.digest.bytes).text, HexText(wanted.bytes).text);
}

}  // namespace

SnapshotScope SnapshotScope::All(const Instance& instance) {
  return {instance, 0, instance.limits().batch, 0, static_cast<uint32_t>(instance.source_tokens().size())};
}

SnapshotScope SnapshotScope::One(const Instance& instance, uint32_t sequence) {
  return {instance, sequence, 1, sequence / instance.limits().beams, instance.source_tokens().empty() ? 0u : 1u};
}

Result<uint64_t> SnapshotBytes(const LoadedModel& model, const SnapshotScope& scope, const SnapshotKind& kind) {
  TARN_ASSIGN_OR_RETURN(const Base base, OpenBase(model, kind.base, scope));
  const SnapshotHeader header = MakeHeader(model.model(), scope, kind);
  return SnapshotLayout(header, CountUsed(model.model(), scope, header, base.blocks)).end;
}

Status SaveSnapshot(const LoadedModel& loaded, const SnapshotScope& scope, const SnapshotKind& kind, Span<uint8_t> memory) {
  const Model& model = loaded.model();
  if (Overlap(kind.base, memory)) return Error(TARN_INVALID_ARGUMENT, "base and delta overlap");
  TARN_ASSIGN_OR_RETURN(const Base base, OpenBase(loaded, kind.base, scope));
  SnapshotHeader header = MakeHeader(model, scope, kind);
  const SnapshotLayout layout(header, CountUsed(model, scope, header, base.blocks));
  header.snapshot_bytes = layout.end;
  if (memory.size() < header.snapshot_bytes) {
    return Error(TARN_BUFFER_TOO_SMALL, "snapshot memory has %zu bytes, %llu are needed", memory.size(),
                 static_cast<unsigned long long>(header.snapshot_bytes));
  }
  uint8_t* const snapshot = memory.data();
  std::memcpy(snapshot, &header, sizeof(header));
  if (header.sources > 0) {
    std::memcpy(snapshot + sizeof(header), &scope.instance.source_tokens()[scope.first_source], header.sources * sizeof(uint32_t));
  }
  for (uint32_t i = 0; header.version != kSnapshotLockstep && i < header.sequences; ++i) {
    const uint64_t tokens = scope.instance.tokens_seen(scope.first_sequence + i);
    std::memcpy(snapshot + layout.sequence_tokens + i * sizeof(tokens), &tokens, sizeof(tokens));
  }
  if (base.is_there) std::memcpy(snapshot + layout.base, &base.digest, sizeof(base.digest));
  uint8_t* const map = snapshot + layout.map;
  uint8_t* next = snapshot + layout.first_block;
  std::memset(map, 0, static_cast<size_t>(layout.first_block - layout.map));
  const uint8_t* const end = snapshot + layout.digest;
  SnapshotBlocks old = base.blocks;
  size_t i = 0;
  bool has_changed = false;
  const auto set = [&](uint8_t* of, size_t bit) { of[bit / 8] = static_cast<uint8_t>(of[bit / 8] | 1u << (bit % 8)); };
  size_t stored = 0;
  ForEachBlock(model, scope, [&](Span<uint8_t> block, uint32_t state) {
    const size_t number = i++;
    if (IsSame(block, old.Next())) return;
    RoundedBlock rounded;
    const bool is_rounded = IsRounded(model, header, block, state, &rounded);
    const size_t bytes = is_rounded ? sizeof(rounded) : kSnapshotBlockBytes;
    if (static_cast<size_t>(end - next) < bytes) {
      has_changed = true;
      return;
    }
    set(map, number);
    if (is_rounded) {
      set(snapshot + layout.rounded_map, stored);
      std::memcpy(next, &rounded, sizeof(rounded));
    } else {
      std::memcpy(next, block.data(), block.size());
      std::memset(next + block.size(), 0, kSnapshotBlockBytes - block.size());
    }
    next += bytes;
    ++stored;
  });
  if (next != end || has_changed) return Error(TARN_BAD_FORMAT, "base: its bytes have changed while they were read");
  WriteSnapshotDigest(memory.subspan(0, static_cast<size_t>(layout.end)));
  return Ok();
}

Status RestoreSnapshot(const LoadedModel& model, Span<const uint8_t> base_memory, Span<const uint8_t> memory,
                       const SnapshotScope& scope, Instance* instance) {
  TARN_ASSIGN_OR_RETURN(const Base base, OpenBase(model, base_memory, scope));
  const char* const name = base.is_there ? "delta" : "snapshot";
  const Result<SnapshotHeader> checked = Check(model, memory, scope);
  if (!checked.ok()) return checked.status().In(name);
  const SnapshotHeader& header = checked.value();
  TARN_RETURN_IF_ERROR(CheckBase(header, memory.data(), base).In(name));
  // Somebody may write to the bytes just now: what decides where ops look is bounded once more.
  for (uint32_t i = 0; i < scope.sequences; ++i) {
    instance->SetTokens(scope.first_sequence + i, std::min(SnapshotSequenceTokens(header, memory.data(), i), header.tokens));
  }
  for (uint32_t i = 0; i < scope.sources; ++i) {
    const auto tokens = std::min<uint64_t>(SnapshotSourceTokens(memory.data(), i), LongestSource(model, header));
    instance->SetSourceTokens(scope.first_source + i, static_cast<uint32_t>(tokens));
  }
  SnapshotBlocks blocks(header, memory.data()), old = base.blocks;
  ForEachBlock(model.model(), scope, [&](Span<uint8_t> block, uint32_t) {
    const uint8_t *const changed = blocks.Next(), *const same = old.Next();
    const uint8_t* const from = changed != nullptr ? changed : same;
    if (from != nullptr) {
      std::memcpy(block.data(), from, block.size());
    } else {
      std::memset(block.data(), 0, block.size());
    }
  });
  return Ok();
}

}  // namespace tarn
