#include "tools/convert/writer/model_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/convert/checkpoint/half.h"
#include "tools/convert/graph/quantize.h"
#include "tools/convert/json/error.h"
#include "tools/convert/writer/graph_buffer.h"

namespace tarn::convert {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'A', 'R', 'N', '\r', '\n', 0x1A, '\n'};
constexpr uint16_t kMajor = 1, kMinor = 2, kMinorOfNewer = 3;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kHashedHeaderBytes = 32;
constexpr uint64_t kSectionAlignment = 16384;
constexpr uint64_t kBlockElements = uint64_t{1} << 18;

class Hash {
 public:
  Hash() { XXH3_128bits_reset(&state_); }
  void Add(const void* bytes, size_t count) { XXH3_128bits_update(&state_, bytes, count); }
  void Store(uint8_t* out) const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    std::memcpy(out, canonical.digest, sizeof(canonical.digest));
  }

 private:
  XXH3_state_t state_;  // of the library's own XXH3_createState() a failure would have to be checked
};

class WeightSection {
 public:
  WeightSection(const WeightReader& weights, ByteSink* sink, const Advance& advance, const RoundedMatrices* rounded)
      : weights_(weights), sink_(*sink), advance_(advance), rounded_(rounded) {}

  void Write(const Graph& graph, const std::vector<uint64_t>& offsets) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      const GraphTensor& tensor = graph.tensors[i];
      PadTo(offsets[i]);
      if (tensor.integers != nullptr) {
        Emit(tensor.integers->data(), tensor.integers->size() * sizeof(int32_t));
      } else if (tensor.fold) {
        WriteFolded(tensor);
      } else if (tensor.parts.empty()) {
        Emit(scales_.data(), scales_.size());
        scales_.clear();
      } else if (const RoundedMatrix* const matrix = RoundedOf(tensor)) {
        WriteRounded(*matrix, tensor.dtype);
      } else {
        WriteRows(tensor);
      }
    }
  }

  uint64_t bytes() const { return position_; }
  const Hash& hash() const { return hash_; }

 private:
  void Emit(const void* bytes, size_t count) {
    hash_.Add(bytes, count);
    sink_.Write(bytes, count);
    position_ += count;
  }

  void PadTo(uint64_t offset) {
    static constexpr std::array<uint8_t, kTensorAlignment> kZeros = {};
    Emit(kZeros.data(), offset - position_);
  }

  void Done(uint64_t elements) const {
    if (advance_) advance_(elements);
  }

  // Calls f(values, rows, columns) for block after block of the tensor's rows.
  template <typename F>
  void ForBlocks(const GraphTensor& tensor, const F& f) {
    for (const WeightSpec& part : tensor.parts) {
      const uint64_t rows = part.shape[0], columns = ElementCount(part.shape) / rows;
      const uint64_t block = std::max<uint64_t>(1, kBlockElements / columns);
      for (uint64_t row = 0; row < rows; row += block) {
        const uint64_t count = std::min(block, rows - row);
        values_.resize(count * columns);
        weights_.Read(part, row * columns, count * columns, values_.data());
        f(values_.data(), count, columns);
        Done(count * columns);
      }
    }
  }

  // Blocks hold whole rows, and rows of I4, I3 and I2 whole bytes: a block is bytes of its own in every dtype.
  void WriteRows(const GraphTensor& tensor) {
    switch (tensor.dtype) {
      case format::DType::F16:
        return ForBlocks(
            tensor, [&](const float* values, uint64_t rows, uint64_t columns) { EmitF16(tensor.name, values, rows * columns); });
      case format::DType::I8:
        return ForBlocks(tensor, [&](const float* values, uint64_t rows, uint64_t columns) { EmitInt8(values, rows, columns); });
      case format::DType::I4:
      case format::DType::I3:
      case format::DType::I2:
        return ForBlocks(tensor, [&](const float* values, uint64_t rows, uint64_t columns) {
          for (uint64_t r = 0; r < rows; ++r) EmitBlocks(tensor.dtype, values + r * columns, columns);
        });
      case format::DType::I32:
        return ForBlocks(tensor, [&](const float* values, uint64_t rows, uint64_t columns) { EmitI32(values, rows * columns); });
      default:
        return ForBlocks(
            tensor, [&](const float* values, uint64_t rows, uint64_t columns) { Emit(values, rows * columns * sizeof(float)); });
    }
  }

  const RoundedMatrix* RoundedOf(const GraphTensor& tensor) const {
    if (rounded_ == nullptr) return nullptr;
    const auto found = rounded_->find(tensor.name);
    const bool fits = found != rounded_->end() && (tensor.dtype == format::DType::F32 || tensor.dtype == found->second.dtype);
    return fits ? &found->second : nullptr;
  }

  void WriteRounded(const RoundedMatrix& matrix, format::DType dtype) {
    if (dtype == matrix.dtype) {
      Emit(matrix.values.data(), matrix.values.size());
      scales_ = matrix.scales;
    } else {
      values_.resize(matrix.columns);
      for (size_t row = 0; row < matrix.rows; ++row) {
        matrix.Read(row, values_.data());
        Emit(values_.data(), matrix.columns * sizeof(float));
      }
    }
    Done(uint64_t{matrix.rows} * matrix.columns);
  }

  void EmitF16(const std::string& name, const float* values, uint64_t count) {
    halves_.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      if (std::fabs(values[i]) > kLargestF16) {
        Fail("tensor \"", name, "\": ", values[i], " is beyond f16, which ends at ", kLargestF16);
      }
      halves_[i] = F16OfFloat(values[i]);
    }
    Emit(halves_.data(), count * sizeof(uint16_t));
  }

  void EmitI32(const float* values, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<int32_t>(values[i]);
      Emit(&value, sizeof(value));
    }
  }

  void EmitInt8(const float* values, uint64_t rows, uint64_t columns) {
    bytes_.resize(rows * columns);
    for (uint64_t r = 0; r < rows; ++r) {
      AddScale(QuantizeRow(values + r * columns, columns, reinterpret_cast<int8_t*>(bytes_.data()) + r * columns));
    }
    Emit(bytes_.data(), bytes_.size());
  }

  // One row.
  void EmitBlocks(format::DType dtype, const float* values, size_t columns) {
    numbers_.resize(columns);
    halves_.resize(columns / kScaleBlock);
    QuantizeBlocks(dtype, values, columns, numbers_.data(), halves_.data());
    for (const uint16_t scale : halves_) AddScale(scale);
    bytes_.resize(PackedBytes(dtype, columns));
    PackRow(dtype, numbers_.data(), columns, bytes_.data());
    Emit(bytes_.data(), bytes_.size());
  }

  // f32 of I8, bf16 of blockwise types
  template <typename Scale>
  void AddScale(Scale scale) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&scale);
    scales_.insert(scales_.end(), bytes, bytes + sizeof(scale));
  }

  void WriteFolded(const GraphTensor& tensor) {
    std::vector<std::vector<float>> parts;
    for (const WeightSpec& spec : tensor.parts) {
      parts.emplace_back(ElementCount(spec.shape));
      weights_.Read(spec, 0, parts.back().size(), parts.back().data());
    }
    const std::vector<float> values = tensor.fold(parts);
    for (const float value : values) {
      if (!std::isfinite(value)) Fail("tensor \"", tensor.name, "\": its parts multiply to ", value);
    }
    Emit(values.data(), values.size() * sizeof(float));
    Done(values.size());
  }

  const WeightReader& weights_;
  ByteSink& sink_;
  const Advance& advance_;
  const RoundedMatrices* const rounded_;
  Hash hash_;
  uint64_t position_ = 0;
  std::vector<float> values_;
  std::vector<uint16_t> halves_;
  std::vector<int8_t> numbers_;
  std::vector<uint8_t> bytes_, scales_;
};

}  // namespace

ModelSizes WriteModel(const Graph& graph, const WeightReader& weights, ByteSink* sink, const Advance& advance,
                      const RoundedMatrices* rounded) {
  const std::vector<uint64_t> offsets = TensorOffsets(graph);
  const flatbuffers::DetachedBuffer buffer = BuildGraphBuffer(graph, offsets);
  const auto graph_bytes = static_cast<uint32_t>(buffer.size());
  const uint64_t unpadded = kHeaderBytes + graph_bytes;
  const uint64_t section = (unpadded + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;

  std::array<uint8_t, kHeaderBytes> header = {};
  sink->Write(header.data(), header.size());  // its hashes are known at the end
  sink->Write(buffer.data(), buffer.size());
  const std::vector<uint8_t> padding(section - unpadded);
  sink->Write(padding.data(), padding.size());

  WeightSection body(weights, sink, advance, rounded);
  body.Write(graph, offsets);
  const uint64_t weight_bytes = body.bytes();

  std::memcpy(&header[0], kMagic, sizeof(kMagic));
  std::memcpy(&header[8], &kMajor, sizeof(kMajor));
  const uint16_t minor = graph.tokenizer_writer || !graph.features.empty() ? kMinorOfNewer : kMinor;
  std::memcpy(&header[10], &minor, sizeof(minor));
  std::memcpy(&header[12], &graph_bytes, sizeof(graph_bytes));
  std::memcpy(&header[16], &section, sizeof(section));
  std::memcpy(&header[24], &weight_bytes, sizeof(weight_bytes));
  Hash hash;
  hash.Add(header.data(), kHashedHeaderBytes);
  hash.Add(buffer.data(), buffer.size());
  hash.Store(&header[32]);
  body.hash().Store(&header[48]);
  sink->Rewrite(0, header.data(), header.size());
  return {graph_bytes, weight_bytes, section + weight_bytes};
}

}  // namespace tarn::convert
