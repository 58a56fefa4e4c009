#include "runtime/session/packed_cache.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/arith.h"
#include "core/format.h"
#include "runtime/model/digest.h"
#include "runtime/session/verified_note.h"

namespace tarn {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'P', 'A', 'K', '\r', '\n', 0x1A, '\n'};
constexpr uint32_t kVersion = 2;
// A multiple of every system's page, so that the header can be written after the body is on the disk.
constexpr uint64_t kBodyAlignment = 65536;
constexpr size_t kFingerprintBytes = 32;

// ---- Layout ----

// A small layer of any type: its values are as good as random, and valid as every type of weights.
struct Probe {
  static constexpr size_t kInputs = 2 * kScaleBlock;
  static constexpr size_t kMostOutputs = 37;  // no multiple of any tile

  Probe() {
    uint32_t state = 1;
    const auto next = [&state] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1u << 24); };
    for (float& value : weight) value = 2 * next() - 1;
    for (float& value : scales) value = 0.5f + next();
    for (float& value : bias) value = next();
    for (uint16_t& value : block_scales) value = static_cast<uint16_t>(0x3F00 + 127 * next());  // bf16: 0.5 to 1
  }

  DenseSpec Spec(DenseWeights type, size_t outputs, const Kernels* kernels) const {
    DenseSpec spec{};
    spec.inputs = kInputs;
    spec.outputs = outputs;
    spec.type = type;
    spec.weight = weight;
    spec.scales = type == DenseWeights::kQC8W ? scales : nullptr;
    spec.block_scales = IsBlockwise(type) ? block_scales : nullptr;
    spec.bias = bias;
    spec.x_stride = kInputs;
    spec.y_stride = outputs;
    spec.max_rows = 1;
    spec.kernels = kernels;
    return spec;
  }

  float weight[kMostOutputs * kInputs];
  float scales[kMostOutputs];
  float bias[kMostOutputs];
  uint16_t block_scales[kMostOutputs * 2];
};

// Calls visit(spec, bytes) for every small layer that is packed. Errors: those of `visit` and of measuring.
template <typename F>
Status VisitProbes(const Environment& environment, const Probe& probe, F visit) {
  for (const DenseWeights type : {DenseWeights::kF32, DenseWeights::kF16, DenseWeights::kQC8W, DenseWeights::kQB4W,
                                  DenseWeights::kQB3W, DenseWeights::kQB2W}) {
    for (const size_t outputs : {size_t{1}, Probe::kMostOutputs}) {
      const DenseSpec spec = probe.Spec(type, outputs, environment.kernels);
      const Result<DenseBytes> bytes = BackendOf(*environment.dense, spec).measure(spec);
      if (bytes.status().code() == TARN_UNSUPPORTED) continue;  // on this CPU; models of that type fail by themselves
      if (!bytes.ok()) return bytes.status();
      if (bytes.value().packed > 0) TARN_RETURN_IF_ERROR(visit(spec, bytes.value().packed));
    }
  }
  return Ok();
}

// The layout has no number of its own: two builds or CPUs that pack these layers to the same bytes have the same one. It may depend
// on the type of the weights, and on whether outputs fill a tile.
Result<uint64_t> LayoutOf(const Environment& environment) {
  const Probe probe;
  XXH3_state_t hash;
  XXH3_INITSTATE(&hash);
  XXH3_64bits_reset(&hash);
  XXH3_64bits_update(&hash, environment.dense->name, std::strlen(environment.dense->name));
  const auto add = [&](const DenseSpec& spec, uint64_t packed_bytes) -> Status {
    TARN_ASSIGN_OR_RETURN(const Block packed, Block::Allocate(environment.allocator, packed_bytes, "packed probe"));
    std::memset(packed.bytes().data(), 0, packed.bytes().size());
    TARN_RETURN_IF_ERROR(BackendOf(*environment.dense, spec).pack(spec, packed.bytes()));
    XXH3_64bits_update(&hash, &spec.type, sizeof(spec.type));
    XXH3_64bits_update(&hash, packed.bytes().data(), packed.bytes().size());
    return Ok();
  };
  TARN_RETURN_IF_ERROR(VisitProbes(environment, probe, add));
  return static_cast<uint64_t>(XXH3_64bits_digest(&hash));
}

// One of sixteen: copies of a model have notes of their own, but for chance, and a model that is copied anew again and again leaves
// no more than that.
unsigned NoteNumber(const FileIdentity& model) {
  const uint64_t place[] = {model.device, model.inode, model.offset_bytes};
  return static_cast<unsigned>(XXH3_64bits(place, sizeof(place)) % 16);
}

}  // namespace

// ---- File ----

struct PackedCache::Header {
  uint8_t magic[8];
  uint32_t version;
  uint32_t entries;
  uint64_t file_bytes;
  uint64_t layout;
  uint8_t fingerprint[kFingerprintBytes];
  Digest body_hash;
  Digest rest_hash;  // of the model's weights that are not in the body
  Digest hash;       // of all before it, and of the table

  // Everything that is known beforehand.
  bool Expects(const Header& other) const { return std::memcmp(this, &other, offsetof(Header, body_hash)) == 0; }

  Digest Hash(Span<const PackedWeights::Entry> table) const {
    return DigestOf({reinterpret_cast<const uint8_t*>(this), offsetof(Header, hash)},
                    {reinterpret_cast<const uint8_t*>(table.data()), table.size() * sizeof(PackedWeights::Entry)});
  }
};

uint64_t PackedCache::FileBytes(const PackedWeights& plan) {
  return AlignUp(sizeof(Header) + plan.entries().size() * sizeof(PackedWeights::Entry), kBodyAlignment) + plan.bytes().weights;
}

Result<uint64_t> PackedCache::WorkingBytes(const Environment& environment) {
  uint64_t most = 0;
  TARN_RETURN_IF_ERROR(VisitProbes(environment, Probe(), [&](const DenseSpec&, uint64_t packed_bytes) {
    if (packed_bytes > most) most = packed_bytes;
    return Ok();
  }));
  return most;
}

Result<PackedCache> PackedCache::In(const char* folder, const Environment& environment, const PackedWeights& plan) {
  static_assert(sizeof(Header) == 112, "the header is compared and written as bytes");
  PackedCache cache;
  TARN_ASSIGN_OR_RETURN(cache.layout_, LayoutOf(environment));
  cache.folder_ = folder;
  cache.model_ = environment.model;
  cache.plan_ = &plan;
  cache.fingerprint_ = environment.model->fingerprint();
  cache.entries_ = plan.entries();
  cache.file_bytes_ = FileBytes(plan);
  cache.body_bytes_ = static_cast<size_t>(plan.bytes().weights);
  size_t length = 0;
  for (const uint8_t byte : environment.model->fingerprint()) {
    length += Format(cache.name_ + length, kNameBytes - length, "%02x", byte);
  }
  length += Format(cache.name_ + length, kNameBytes - length, "-%016llx", static_cast<unsigned long long>(cache.layout_));
  std::memcpy(cache.note_, cache.name_, length);
  Format(cache.name_ + length, kNameBytes - length, ".packed");
  Format(cache.note_ + length, kNameBytes - length, "-%x.verified", NoteNumber(environment.model->identity()));
  return cache;
}

PackedCache::Header PackedCache::ExpectedHeader() const {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.entries = static_cast<uint32_t>(entries_.size());
  header.file_bytes = file_bytes_;
  header.layout = layout_;
  std::memcpy(header.fingerprint, fingerprint_, kFingerprintBytes);
  return header;
}

CacheFile PackedCache::Find() const {
  CacheFile file = CacheFile::Open(folder_, name_, file_bytes_);
  if (!file.exists()) return file;
  const Header header = HeaderOf(file);
  const bool fits =
      header.Expects(ExpectedHeader()) && header.hash == header.Hash(entries_) &&
      std::memcmp(file.bytes().data() + sizeof(header), entries_.data(), entries_.size() * sizeof(PackedWeights::Entry)) == 0;
  return fits ? std::move(file) : CacheFile();
}

PackedCache::Header PackedCache::HeaderOf(const CacheFile& file) {
  Header header;
  std::memcpy(&header, file.bytes().data(), sizeof(header));
  return header;
}

bool PackedCache::BodyIsWhole(const CacheFile& file) const { return HeaderOf(file).body_hash == DigestOf(Body(file)); }

bool PackedCache::RestIsWhole(const CacheFile& file) const { return HeaderOf(file).rest_hash == DigestOfRest(); }

// Tensors lie in the order of their numbers. What is between them is hashed too.
Digest PackedCache::DigestOfRest() const {
  const Span<const uint8_t> weights = model_->weights();
  DigestStream stream;
  size_t done = 0;
  const auto add_to = [&](size_t end) {
    stream.Add(weights.subspan(done, end - done));
    model_->Forget(weights.subspan(done, end - done));
  };
  for (uint32_t i = 0; i < model_->graph().tensors()->size(); ++i) {
    if (!plan_->IsOnlyPacked(*model_, i)) continue;
    const TensorView view = model_->tensor(i);
    const size_t begin = static_cast<size_t>(view.data - weights.data());
    add_to(begin);
    done = begin + static_cast<size_t>(view.data_bytes);
  }
  add_to(weights.size());
  return stream.Finish();
}

bool PackedCache::IsNoted(const CacheFile& file) const {
  return VerifiedNote(model_->identity(), file.identity()).IsIn(folder_, note_);
}

void PackedCache::Note(const CacheFile& file) const {
  if (file.identity().known == file.exists()) VerifiedNote(model_->identity(), file.identity()).Write(folder_, note_);
}

bool PackedCache::AwaitNextTick(const CacheFile& packed) const {
  return WaitForNextTick(model_->identity()) && WaitForNextTick(packed.identity());
}

bool PackedCache::CanCreate() const { return CacheFile::CanCreate(folder_, file_bytes_); }

CacheFile PackedCache::Create() const { return CacheFile::Create(folder_, name_, file_bytes_); }

bool PackedCache::Finish(CacheFile* file) const {
  // In this order, so that after a power cut a header which is whole means a body which is whole.
  if (!file->Sync()) return false;
  Header header = ExpectedHeader();
  const Span<uint8_t> body = Body(file);
  header.body_hash = DigestOf(body);
  header.rest_hash = DigestOfRest();
  header.hash = header.Hash(entries_);
  std::memcpy(file->writable().data(), &header, sizeof(header));
  std::memcpy(file->writable().data() + sizeof(header), entries_.data(), entries_.size() * sizeof(PackedWeights::Entry));
  file->Publish(name_);
  return true;
}

}  // namespace tarn
