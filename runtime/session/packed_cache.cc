#include "runtime/session/packed_cache.h"

#include <cstdio>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/core/arith.h"
#include "runtime/session/digest.h"

namespace tarn {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'P', 'A', 'K', '\r', '\n', 0x1A, '\n'};
constexpr uint32_t kVersion = 1;
// A multiple of every system's page, so that the header can be written after the body is on the disk.
constexpr uint64_t kBodyAlignment = 65536;
constexpr size_t kFingerprintBytes = 32;

// ---- Layout ----

// A small layer of any type: its values are as good as random, and valid as f32, f16, int8 and int4.
struct Probe {
  static constexpr size_t kInputs = 2 * kI4Block;
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
    spec.block_scales = type == DenseWeights::kQB4W ? block_scales : nullptr;
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

// The layout has no number of its own: two builds or CPUs that pack these layers to the same bytes have the same one. It may depend
// on the type of the weights, and on whether outputs fill a tile.
Result<uint64_t> LayoutOf(const Environment& environment) {
  const Probe probe;
  XXH3_state_t hash;
  XXH3_INITSTATE(&hash);
  XXH3_64bits_reset(&hash);
  for (const DenseWeights type : {DenseWeights::kF32, DenseWeights::kF16, DenseWeights::kQC8W, DenseWeights::kQB4W}) {
    for (const size_t outputs : {size_t{1}, Probe::kMostOutputs}) {
      const DenseSpec spec = probe.Spec(type, outputs, environment.kernels);
      const DenseBackend& dense = DenseFor(*environment.dense, spec);
      const Result<DenseBytes> bytes = dense.measure(spec);
      if (bytes.status().code() == TARN_UNSUPPORTED) continue;  // on this CPU; models of that type fail by themselves
      if (!bytes.ok()) return bytes.status();
      TARN_ASSIGN_OR_RETURN(const Block packed, Block::Allocate(environment.allocator, bytes.value().packed, "packed probe"));
      if (packed.bytes().empty()) continue;
      std::memset(packed.bytes().data(), 0, packed.bytes().size());
      TARN_RETURN_IF_ERROR(dense.pack(spec, packed.bytes()));
      XXH3_64bits_update(&hash, dense.name, std::strlen(dense.name));
      XXH3_64bits_update(&hash, &type, sizeof(type));
      XXH3_64bits_update(&hash, packed.bytes().data(), packed.bytes().size());
    }
  }
  return static_cast<uint64_t>(XXH3_64bits_digest(&hash));
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
  Digest hash;  // of all before it, and of the table

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

Result<PackedCache> PackedCache::In(const char* folder, const Environment& environment, const PackedWeights& plan) {
  static_assert(sizeof(Header) == 96, "the header is compared and written as bytes");
  PackedCache cache;
  TARN_ASSIGN_OR_RETURN(cache.layout_, LayoutOf(environment));
  cache.folder_ = folder;
  cache.fingerprint_ = environment.model->fingerprint();
  cache.entries_ = plan.entries();
  cache.file_bytes_ = FileBytes(plan);
  cache.body_bytes_ = static_cast<size_t>(plan.bytes().weights);
  char* end = cache.name_;
  for (size_t i = 0; i < kFingerprintBytes; ++i) end += std::snprintf(end, 3, "%02x", cache.fingerprint_[i]);
  std::snprintf(end, kNameBytes - 2 * kFingerprintBytes, "-%016llx.packed", static_cast<unsigned long long>(cache.layout_));
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

CacheFile PackedCache::Find(bool verify) const {
  CacheFile file = CacheFile::Open(folder_, name_, file_bytes_);
  if (!file.exists()) return file;
  Header header;
  std::memcpy(&header, file.bytes().data(), sizeof(header));
  const bool fits =
      header.Expects(ExpectedHeader()) && header.hash == header.Hash(entries_) &&
      std::memcmp(file.bytes().data() + sizeof(header), entries_.data(), entries_.size() * sizeof(PackedWeights::Entry)) == 0;
  if (!fits) return CacheFile();
  const Span<const uint8_t> body = Body(file);
  if (verify && !(header.body_hash == DigestOf(body))) return CacheFile();
  return file;
}

bool PackedCache::CanCreate() const { return CacheFile::CanCreate(folder_, file_bytes_); }

CacheFile PackedCache::Create() const { return CacheFile::Create(folder_, name_, file_bytes_); }

bool PackedCache::Finish(CacheFile* file) const {
  // In this order, so that after a power cut a header which is whole means a body which is whole.
  if (!file->Sync()) return false;
  Header header = ExpectedHeader();
  const Span<uint8_t> body = Body(file);
  header.body_hash = DigestOf(body);
  header.hash = header.Hash(entries_);
  std::memcpy(file->writable().data(), &header, sizeof(header));
  std::memcpy(file->writable().data() + sizeof(header), entries_.data(), entries_.size() * sizeof(PackedWeights::Entry));
  file->Publish(name_);
  return true;
}

}  // namespace tarn
