// A snapshot with anything in it: restoring it either changes nothing, with words, or leaves a session that can go on.
//
// And whoever reads it without a session finds the same in it.
//
// The input says how a good snapshot is spoiled, so that corpus files keep their sense whatever models and snapshots look like:
//
//   [ model and kernels | tokens fed before, one sequence more than the other?, a delta?, spoil its base? | bytes cut off or added
//   | { where: u32, what: u8, value: u24 } ... ]
//
// Where there is no delta, the last question is: a compact one?
//
// The hash would hide nearly everything from the fuzzer, so it is made right again; and so is the size where the number of blocks
// changes, which would be refused at once too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tarn/inspect.h"
#include "tarn/tarn.h"
#include "tests/support/models.h"

namespace {

constexpr uint32_t kChunk = 6;

// Every way of counting that states know: none, a bound, rings of all kinds, sources.
std::vector<std::vector<uint8_t>> MakeModels() {
  using tarn::test::ConfigText;
  const char* const kSources =
      R"({"task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 256, "hidden_size": 32,
      "num_heads": 4, "intermediate_size": 48, "hidden_act": "relu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes",
      "position_embedding": "sinusoidal", "encoder_attention": {"system": "softmax", "max_context": 40},
      "cross_attention": {"system": "softmax", "max_context": 40}, "decoder_attention": {"system": "abc_mlp", "num_slots": 6}})";
  std::vector<std::vector<uint8_t>> models = {
      tarn::test::MakeModel(kSources, tarn::convert::Precision::kInt8, tarn::format::DType::I8),
      tarn::test::MakeModel(ConfigText(tarn::test::kRfa, "learned").insert(1, R"("max_positions": 40, )")),
      tarn::test::MakeModel(ConfigText(tarn::test::kSoftmax), tarn::convert::Precision::kInt8, tarn::format::DType::I8),
  };
  for (const tarn::test::SystemCase& system : tarn::test::kMoreSystems) {
    models.push_back(tarn::test::MakeModel(ConfigText(system.attention, "sinusoidal", system.heads)));
  }
  return models;
}

// A model with a session that everything is restored into.
struct Target {
  Target(const std::vector<uint8_t>& bytes, bool reference) : file(bytes) {
    tarn_source source = TARN_SOURCE_INIT;
    source.buffer = file.data();
    source.length_bytes = file.size();
    tarn_model_config model_config = TARN_MODEL_CONFIG_INIT;
    model_config.portable_dense = 1;
    model_config.isa = reference ? "reference" : nullptr;
    Expect(tarn_model_open(&source, &model_config, &model, &error));
    tarn_model_info info = TARN_MODEL_INFO_INIT;
    Expect(tarn_model_get_info(model, &info, &error));
    encodes = info.task == TARN_TASK_SEQ2SEQ;
    tarn_session_config config = TARN_SESSION_CONFIG_INIT;
    config.batch = 2;
    config.max_chunk = kChunk;
    config.max_source = encodes ? 5 : 0;
    Expect(tarn_session_create(model, &config, &session, &error));
  }
  ~Target() {
    tarn_session_destroy(session);
    tarn_model_close(model);
  }

  void Expect(tarn_status status) const {
    if (status == TARN_OK) return;
    std::fprintf(stderr, "%s\n", error.message);
    std::abort();
  }

  std::vector<uint8_t> Save() const {
    std::vector<uint8_t> snapshot(static_cast<size_t>(tarn_session_snapshot_bytes(session)));
    Expect(tarn_session_save(session, snapshot.data(), snapshot.size(), &error));
    return snapshot;
  }

  std::vector<uint8_t> SaveCompact() const {
    std::vector<uint8_t> snapshot(static_cast<size_t>(tarn_session_compact_bytes(session)));
    Expect(tarn_session_save_compact(session, snapshot.data(), snapshot.size(), &error));
    return snapshot;
  }

  // A session that has seen so many tokens, and with `apart` its first sequence some more.
  std::vector<uint8_t> Good(size_t tokens, bool apart) {
    static const int32_t kIds[2 * 32] = {'a', 'b', 'c'};
    const size_t lengths[2] = {5, 2};
    tarn_session_reset(session);
    if (encodes) Expect(tarn_session_encode(session, kIds, 5, lengths, &error));
    if (tokens > 0) Expect(tarn_session_prefill(session, kIds, tokens, nullptr, &error));
    const tarn_sequence_tokens more = {0, kIds, 3};
    if (apart) Expect(tarn_session_prefill_sequences(session, &more, 1, nullptr, &error));
    return Save();
  }

  // The session as an undamaged delta of `base`.
  std::vector<uint8_t> SaveDelta(const std::vector<uint8_t>& base) const {
    uint64_t size = 0;
    Expect(tarn_session_delta_bytes(session, base.data(), base.size(), &size, &error));
    std::vector<uint8_t> delta(static_cast<size_t>(size));
    Expect(tarn_session_save_delta(session, base.data(), base.size(), delta.data(), delta.size(), &error));
    return delta;
  }

  // A delta of `base`, or a snapshot.
  tarn_status Restore(bool is_delta, const std::vector<uint8_t>& base, const std::vector<uint8_t>& snapshot) {
    if (!is_delta) return tarn_session_restore(session, snapshot.data(), snapshot.size(), &error);
    return tarn_session_restore_delta(session, base.data(), base.size(), snapshot.data(), snapshot.size(), &error);
  }

  const std::vector<uint8_t> file;
  tarn_model* model = nullptr;
  tarn_session* session = nullptr;
  bool encodes = false;
  mutable tarn_error error{};
};

void Rehash(std::vector<uint8_t>* snapshot) {
  constexpr size_t kDigestBytes = sizeof(XXH128_canonical_t::digest);
  uint64_t size = 0;
  if (snapshot->size() >= 24) std::memcpy(&size, snapshot->data() + 16, sizeof(size));
  if (size < kDigestBytes || size > snapshot->size()) return;
  XXH128_canonical_t canonical;
  uint8_t* const digest = snapshot->data() + size - kDigestBytes;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(snapshot->data(), static_cast<size_t>(size - kDigestBytes)));
  std::memcpy(digest, canonical.digest, kDigestBytes);
}

// As snapshot.cc lays it out: a header, the lengths of the sources, from version 2 on those of the sequences, in version 3 the hash
// of the base, the map of blocks, in version 4 that of rounded ones, the blocks, a hash.
struct Layout {
  explicit Layout(const std::vector<uint8_t>& snapshot) {
    const auto load = [&](size_t at, size_t bytes) {
      uint64_t value = 0;
      std::memcpy(&value, snapshot.data() + at, bytes);
      return static_cast<size_t>(value);
    };
    blocks = load(72, 8) / kBlockBytes;
    sequence_tokens = kHeaderBytes + load(64, 4) * sizeof(uint32_t);
    has_sequence_tokens = load(8, 4) >= 2;
    map = sequence_tokens + (has_sequence_tokens ? load(12, 4) * sizeof(uint64_t) : 0) + (load(8, 4) == 3 ? kDigestBytes : 0);
    first_block = map + (blocks + 7) / 8;
    if (load(8, 4) != 4) return;
    rounded_map = first_block;
    for (size_t i = 0; i < blocks; ++i) stored += snapshot[map + i / 8] >> (i % 8) & 1;
    first_block += (stored + 7) / 8;
  }
  static constexpr size_t kHeaderBytes = 80;
  static constexpr size_t kBlockBytes = 64;
  static constexpr size_t kRoundedBytes = 20;
  static constexpr size_t kDigestBytes = 16;
  static constexpr size_t kSizeAt = 16;
  bool has_sequence_tokens;
  size_t blocks, sequence_tokens, map, first_block;
  size_t rounded_map = 0, stored = 0;  // 0: there is none; its bits
};

// The digest that `base` ends with, into a delta.
void NameBase(const Layout& layout, const std::vector<uint8_t>& base, std::vector<uint8_t>* delta) {
  uint64_t size = 0;
  if (base.size() >= Layout::kSizeAt + sizeof(size)) std::memcpy(&size, base.data() + Layout::kSizeAt, sizeof(size));
  if (size < Layout::kDigestBytes || size > base.size()) return;
  std::memcpy(delta->data() + layout.map - Layout::kDigestBytes, base.data() + size - Layout::kDigestBytes, Layout::kDigestBytes);
}

float Special(uint32_t value) {
  const float values[] = {0.0f,  -0.0f,  1.0f,   -1.0f,  NAN,   INFINITY, -INFINITY,
                          3e38f, -3e38f, 1e-45f, 1e-38f, 1e20f, -1e20f,   65504.0f};
  return values[value % (sizeof(values) / sizeof(*values))];
}

// Marks a block as there, or as zero, and makes the blocks and the size agree with that.
void ToggleBlock(const Layout& layout, size_t block, uint32_t value, std::vector<uint8_t>* snapshot) {
  if (layout.blocks == 0) return;
  block %= layout.blocks;
  size_t before = 0;
  for (size_t i = 0; i < block; ++i) before += (*snapshot)[layout.map + i / 8] >> (i % 8) & 1;
  const size_t at = layout.first_block + before * Layout::kBlockBytes;
  if (at + Layout::kBlockBytes > snapshot->size()) return;  // an earlier instruction has spoiled the map
  const auto place = snapshot->begin() + static_cast<ptrdiff_t>(at);
  uint8_t& bits = (*snapshot)[layout.map + block / 8];
  const uint8_t bit = static_cast<uint8_t>(1u << (block % 8));
  bits ^= bit;
  if ((bits & bit) != 0) {
    const float special = Special(value);
    uint8_t content[Layout::kBlockBytes];
    for (size_t i = 0; i < sizeof(content); i += sizeof(special)) std::memcpy(content + i, &special, sizeof(special));
    snapshot->insert(place, content, content + sizeof(content));
  } else {
    snapshot->erase(place, place + static_cast<ptrdiff_t>(Layout::kBlockBytes));
  }
  const uint64_t size = snapshot->size();
  std::memcpy(snapshot->data() + Layout::kSizeAt, &size, sizeof(size));
}

// Marks a stored block of a compact snapshot as rounded, or as whole, and makes the size agree with that.
void ToggleRounded(const Layout& layout, size_t block, std::vector<uint8_t>* snapshot) {
  if (layout.stored == 0) return;
  block %= layout.stored;
  size_t at = layout.first_block;
  const auto is_rounded = [&](size_t i) { return ((*snapshot)[layout.rounded_map + i / 8] >> (i % 8) & 1) != 0; };
  for (size_t i = 0; i < block; ++i) at += is_rounded(i) ? Layout::kRoundedBytes : Layout::kBlockBytes;
  const bool was_rounded = is_rounded(block);
  if (at + (was_rounded ? Layout::kRoundedBytes : Layout::kBlockBytes) > snapshot->size()) return;  // the map is spoiled
  const auto end_of_rounded = snapshot->begin() + static_cast<ptrdiff_t>(at + Layout::kRoundedBytes);
  constexpr size_t kMore = Layout::kBlockBytes - Layout::kRoundedBytes;
  if (was_rounded) {
    snapshot->insert(end_of_rounded, kMore, uint8_t{0x7F});
  } else {
    snapshot->erase(end_of_rounded, end_of_rounded + static_cast<ptrdiff_t>(kMore));
  }
  (*snapshot)[layout.rounded_map + block / 8] ^= static_cast<uint8_t>(1u << (block % 8));
  const uint64_t size = snapshot->size();
  std::memcpy(snapshot->data() + Layout::kSizeAt, &size, sizeof(size));
}

void Spoil(const Layout& layout, const uint8_t* instruction, std::vector<uint8_t>* snapshot) {
  uint32_t where, value;
  std::memcpy(&where, instruction, sizeof(where));
  std::memcpy(&value, instruction + 4, sizeof(value));
  const uint8_t what = static_cast<uint8_t>(value);
  value >>= 8;
  const size_t size = snapshot->size();
  if (size < layout.first_block + sizeof(uint64_t)) return;
  switch (what % 6) {
    case 0:
      (*snapshot)[where % size] = static_cast<uint8_t>(value);
      break;
    case 1: {  // a float of a state
      const float special = Special(value);
      const size_t floats = (size - layout.first_block) / sizeof(special);
      std::memcpy(snapshot->data() + layout.first_block + where % floats * sizeof(special), &special, sizeof(special));
      break;
    }
    case 2: {  // a number of the header, or the length of a source
      const size_t at = where % (layout.map / sizeof(uint32_t)) * sizeof(uint32_t);
      const uint32_t number = value % 2 == 0 ? value / 2 : ~(value / 2);
      std::memcpy(snapshot->data() + at, &number, sizeof(number));
      break;
    }
    case 3:
      layout.rounded_map == 0 ? ToggleBlock(layout, where, value, snapshot) : ToggleRounded(layout, where, snapshot);
      break;
    case 4: {  // tokens that were seen: rings stand elsewhere
      const uint64_t tokens = value % 3 == 0   ? value / 3
                              : value % 3 == 1 ? (uint64_t{1} << 62) - value / 3
                                               : uint64_t{value} << value % 40;
      std::memcpy(snapshot->data() + 56, &tokens, sizeof(tokens));
      if (layout.has_sequence_tokens) std::memcpy(snapshot->data() + layout.sequence_tokens, &tokens, sizeof(tokens));
      break;
    }
    default: {  // one block over another
      const size_t stored = (size - layout.first_block) / Layout::kBlockBytes;
      if (stored == 0) break;
      uint8_t* const blocks = snapshot->data() + layout.first_block;
      std::memmove(blocks + where % stored * Layout::kBlockBytes, blocks + value % stored * Layout::kBlockBytes,
                   Layout::kBlockBytes);
    }
  }
}

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// All states, read piece by piece.
std::vector<uint8_t> States(const std::vector<uint8_t>& snapshot, uint64_t state_bytes) {
  constexpr size_t kPiece = 1000;  // not of whole blocks
  std::vector<uint8_t> states(static_cast<size_t>(state_bytes));
  for (size_t at = 0; at < states.size(); at += kPiece) {
    const size_t count = std::min(kPiece, states.size() - at);
    Check(tarn_snapshot_read(snapshot.data(), snapshot.size(), at, states.data() + at, count, nullptr) == TARN_OK,
          "states that cannot be read");
  }
  return states;
}

// Whatever the bytes are: they are read within their bounds, and what is refused has words.
void ReadAlone(const std::vector<uint8_t>& snapshot) {
  tarn_snapshot_info info = {};
  info.struct_size = sizeof(info);
  tarn_error error = {};
  if (tarn_snapshot_get_info(snapshot.data(), snapshot.size(), &info, &error) != TARN_OK) {
    Check(error.message[0] != '\0', "a refusal without words");
  }
  uint32_t tokens = 0;
  tarn_snapshot_source_tokens(snapshot.data(), snapshot.size(), 1, &tokens, &error);
  uint64_t seen = 0;
  tarn_snapshot_sequence_tokens(snapshot.data(), snapshot.size(), 1, &seen, &error);
  std::vector<uint8_t> states(5000);
  for (const uint64_t offset : {uint64_t{0}, info.state_bytes / 2, info.state_bytes - states.size(), UINT64_MAX}) {
    tarn_snapshot_read(snapshot.data(), snapshot.size(), offset, states.data(), states.size(), &error);
  }
}

// What a delta and its base say of the states, block by block.
std::vector<uint8_t> Merged(const std::vector<uint8_t>& base, const std::vector<uint8_t>& delta, uint64_t state_bytes) {
  std::vector<uint8_t> states = States(base, state_bytes);
  const Layout layout(delta);
  size_t at = layout.first_block;
  for (size_t block = 0; block < layout.blocks; ++block) {
    if ((delta[layout.map + block / 8] >> (block % 8) & 1) == 0) continue;
    std::memcpy(&states[block * Layout::kBlockBytes], &delta[at], Layout::kBlockBytes);
    at += Layout::kBlockBytes;
  }
  return states;
}

// `base`: of a delta, else empty.
void Agree(const Target& target, const std::vector<uint8_t>& base, const std::vector<uint8_t>& restored) {
  const std::vector<uint8_t> saved = target.Save();
  tarn_snapshot_info found = {}, wanted = {};
  found.struct_size = wanted.struct_size = sizeof(found);
  Check(tarn_snapshot_get_info(restored.data(), restored.size(), &found, nullptr) == TARN_OK &&
            tarn_snapshot_get_info(saved.data(), saved.size(), &wanted, nullptr) == TARN_OK,
        "what can be restored can be read");
  Check(found.tokens == tarn_session_tokens(target.session), "other tokens");
  Check(found.state_bytes == wanted.state_bytes, "other sizes");
  const bool is_compact = Layout(restored).rounded_map != 0 || (!base.empty() && Layout(base).rounded_map != 0);
  Check(!base.empty() || is_compact || found.stored_bytes >= wanted.stored_bytes, "other sizes");
  const std::vector<uint8_t> states = States(saved, wanted.state_bytes);
  const std::vector<uint8_t> merged = !base.empty() ? Merged(base, restored, wanted.state_bytes)
                                      : is_compact  ? States(restored, wanted.state_bytes)
                                                    : states;
  for (size_t i = 0; i < states.size(); ++i) {
    Check(states[i] == merged[i] || states[i] == 0, "states of neither delta nor base");  // what is behind a state is not restored
  }
  size_t not_zero = 0;
  for (size_t i = 0; i < states.size(); i += Layout::kBlockBytes) {
    not_zero +=
        std::any_of(states.begin() + static_cast<ptrdiff_t>(i), states.begin() + static_cast<ptrdiff_t>(i + Layout::kBlockBytes),
                    [](uint8_t byte) { return byte != 0; });
  }
  Check(not_zero * Layout::kBlockBytes == wanted.stored_bytes, "states that are not those of the snapshot");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  static const std::vector<std::vector<uint8_t>> models = MakeModels();
  // Made when they are first asked for, and kept.
  static std::vector<std::unique_ptr<Target>> targets(2 * models.size());
  const size_t index = data[0] % targets.size();
  if (targets[index] == nullptr) targets[index] = std::make_unique<Target>(models[index / 2], index % 2 == 0);
  Target& target = *targets[index];

  constexpr size_t kInstructionBytes = 8;
  const bool is_delta = data[1] / 64 % 2 == 1, spoils_base = is_delta && data[1] / 128 == 1;
  std::vector<uint8_t> base;
  if (is_delta) base = target.Good(7, data[2] % 2 == 1);
  std::vector<uint8_t> snapshot = target.Good(data[1] % 32, data[1] / 32 % 2 == 1);
  if (is_delta) snapshot = target.SaveDelta(base);
  if (!is_delta && data[1] / 128 == 1) snapshot = target.SaveCompact();
  const Layout of_delta(snapshot);
  std::vector<uint8_t>& spoiled = spoils_base ? base : snapshot;
  const Layout layout(spoiled);
  for (size_t i = 3; i + kInstructionBytes <= size; i += kInstructionBytes) Spoil(layout, data + i, &spoiled);
  spoiled.resize(std::max<ptrdiff_t>(0, static_cast<ptrdiff_t>(spoiled.size()) + static_cast<int8_t>(data[2])));
  Rehash(&spoiled);
  if (spoils_base) {
    NameBase(of_delta, base, &snapshot);
    Rehash(&snapshot);
  }

  ReadAlone(snapshot);
  const std::vector<uint8_t> before = target.Save();
  if (target.Restore(is_delta, base, snapshot) != TARN_OK) {
    Check(target.error.message[0] != '\0', "a refusal without words");
    Check(target.Save() == before, "a refusal has changed the session");
    return 0;
  }
  Agree(target, base, snapshot);
  const int32_t tokens[2 * kChunk] = {'x'};
  const float* logits = nullptr;
  tarn_session_step(target.session, tokens, &logits, nullptr);
  tarn_session_prefill(target.session, tokens, kChunk, &logits, nullptr);
  if (tarn_session_tokens(target.session) > uint64_t{1} << 62) return 0;  // the last position that a snapshot may have
  const std::vector<uint8_t> after = target.Save();
  target.Expect(tarn_session_restore(target.session, after.data(), after.size(), &target.error));
  Check(target.Save() == after, "a session is not what was restored");
  return 0;
}
