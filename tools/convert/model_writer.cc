#include "tools/convert/model_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/convert/error.h"
#include "tools/convert/graph_buffer.h"
#include "tools/convert/quantize.h"

namespace tarn::convert {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'A', 'R', 'N', '\r', '\n', 0x1A, '\n'};
constexpr uint16_t kMajor = 1, kMinor = 0;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kHashedHeaderBytes = 32;
constexpr uint64_t kSectionAlignment = 16384;
constexpr uint64_t kBlockElements = uint64_t{1} << 18;

class Hash {
 public:
  Hash() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
  void Add(const void* bytes, size_t count) { XXH3_128bits_update(state_.get(), bytes, count); }
  void Store(uint8_t* out) const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    std::memcpy(out, canonical.digest, sizeof(canonical.digest));
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

class WeightSection {
 public:
  WeightSection(const WeightReader& weights, ByteSink* sink, const Advance& advance)
      : weights_(weights), sink_(*sink), advance_(advance) {}

  void Write(const Graph& graph, const std::vector<uint64_t>& offsets) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      const GraphTensor& tensor = graph.tensors[i];
      PadTo(offsets[i]);
      if (tensor.dtype == format::DType::I8) {
        WriteQuantized(tensor);
      } else if (tensor.fold) {
        WriteFolded(tensor);
      } else if (tensor.parts.empty()) {
        Emit(scales_.data(), scales_.size() * sizeof(float));
        scales_.clear();
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

  void WriteRows(const GraphTensor& tensor) {
    ForBlocks(tensor,
              [this](const float* values, uint64_t rows, uint64_t columns) { Emit(values, rows * columns * sizeof(float)); });
  }

  void WriteQuantized(const GraphTensor& tensor) {
    ForBlocks(tensor, [this](const float* values, uint64_t rows, uint64_t columns) {
      quantized_.resize(rows * columns);
      for (uint64_t r = 0; r < rows; ++r) {
        scales_.push_back(QuantizeRow(values + r * columns, columns, quantized_.data() + r * columns));
      }
      Emit(quantized_.data(), quantized_.size());
    });
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
  Hash hash_;
  uint64_t position_ = 0;
  std::vector<float> values_, scales_;
  std::vector<int8_t> quantized_;
};

}  // namespace

ModelSizes WriteModel(const Graph& graph, const WeightReader& weights, ByteSink* sink, const Advance& advance) {
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

  WeightSection body(weights, sink, advance);
  body.Write(graph, offsets);
  const uint64_t weight_bytes = body.bytes();

  std::memcpy(&header[0], kMagic, sizeof(kMagic));
  std::memcpy(&header[8], &kMajor, sizeof(kMajor));
  std::memcpy(&header[10], &kMinor, sizeof(kMinor));
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
