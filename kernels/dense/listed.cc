#include "kernels/dense/listed.h"

#include <cstring>

#include "kernels/dense/portable_work.h"

namespace tarn {
namespace {

constexpr size_t kMostSpan = 2 * kMostListed;

uint64_t RowBytes(const DenseSpec& spec) { return DenseWeightBytes(spec) / spec.outputs; }
uint64_t ScaleBytes(const DenseSpec& spec) { return DenseScaleBytes(spec) / spec.outputs; }

// Pieces of a thread's memory, each of whole cache lines but the last.
uint64_t TileWeightBytes(const DenseSpec& spec) { return AlignUp(kMostListed * RowBytes(spec)); }
uint64_t TileScaleBytes(const DenseSpec& spec) { return AlignUp(kMostListed * ScaleBytes(spec)); }
constexpr uint64_t kTileBiasBytes = AlignUp(kMostListed * sizeof(float));

struct Tile {
  Tile(const DenseSpec& spec, uint8_t* memory)
      : weight(memory),
        scales(weight + TileWeightBytes(spec)),
        bias(reinterpret_cast<float*>(scales + TileScaleBytes(spec))),
        y(bias + kTileBiasBytes / sizeof(float)) {}
  uint8_t* const weight;  // [kMostListed] rows
  uint8_t* const scales;
  float* const bias;
  float* const y;  // [rows, outputs of the tile], at most kMostSpan
};

const uint8_t* ScalesOf(const DenseSpec& spec) {
  return spec.type == DenseWeights::kQC8W ? reinterpret_cast<const uint8_t*>(spec.scales)
                                          : reinterpret_cast<const uint8_t*>(spec.block_scales);
}

// Row after row of `rows` that the list names.
void Gather(const uint8_t* rows, size_t row_bytes, const uint32_t* list, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * row_bytes, rows + list[i] * row_bytes, row_bytes);
}

// Whether all outputs from the first of the list to the last are computed, in place: that takes no longer than to copy half of
// them.
bool IsDense(const uint32_t* list, size_t count) { return list[count - 1] - list[0] < kMostSpan; }

// The layer of the outputs that the list names, or of those from its first to its last.
DenseSpec LayerOf(const DenseSpec& spec, const uint32_t* list, size_t count, const Tile& tile) {
  const bool in_place = IsDense(list, count);
  DenseSpec layer = spec;
  layer.outputs = in_place ? list[count - 1] - list[0] + 1 : count;
  layer.y_stride = layer.outputs;
  const size_t row_bytes = static_cast<size_t>(RowBytes(spec)), scale_bytes = static_cast<size_t>(ScaleBytes(spec));
  const uint8_t* weight = static_cast<const uint8_t*>(spec.weight) + list[0] * row_bytes;
  const uint8_t* scales = scale_bytes == 0 ? nullptr : ScalesOf(spec) + list[0] * scale_bytes;
  if (spec.bias != nullptr) layer.bias = spec.bias + list[0];
  if (!in_place) {
    Gather(static_cast<const uint8_t*>(spec.weight), row_bytes, list, count, tile.weight);
    weight = tile.weight;
    if (scale_bytes != 0) {
      Gather(ScalesOf(spec), scale_bytes, list, count, tile.scales);
      scales = tile.scales;
    }
    if (spec.bias != nullptr) {
      for (size_t i = 0; i < count; ++i) tile.bias[i] = spec.bias[list[i]];
      layer.bias = tile.bias;
    }
  }
  layer.weight = weight;
  if (spec.type == DenseWeights::kQC8W) layer.scales = reinterpret_cast<const float*>(scales);
  if (IsBlockwise(spec.type)) layer.block_scales = reinterpret_cast<const uint16_t*>(scales);
  return layer;
}

// For the rows from `first` on; x and y are those rows.
PortableWork WorkOf(const DenseSpec& spec, const DenseSpec& layer, size_t first, size_t rows, const float* x, float* y,
                    uint8_t* inputs) {
  uint8_t* const sums = inputs + ParameterBytes(spec);
  uint8_t* const quantized = sums + SumBytes(spec);
  return {layer,
          rows,
          x,
          y,
          quantized + first * spec.inputs,
          reinterpret_cast<Qdu8*>(inputs) + first,
          reinterpret_cast<int32_t*>(sums) + first * (spec.inputs / kScaleBlock)};
}

}  // namespace

uint64_t ListedInputBytes(const DenseSpec& spec) {
  return IsQuantized(spec.type) ? ParameterBytes(spec) + SumBytes(spec) + spec.max_rows * spec.inputs : 0;
}

uint64_t ListedOutputBytes(const DenseSpec& spec, uint64_t rows) {
  return TileWeightBytes(spec) + TileScaleBytes(spec) + kTileBiasBytes + rows * kMostSpan * sizeof(float);
}

void QuantizeListed(const DenseSpec& spec, const float* x, size_t row, uint8_t* inputs) {
  if (IsQuantized(spec.type)) QuantizeRow(WorkOf(spec, spec, 0, row + 1, x, nullptr, inputs), row);
}

void MultiplyListed(const DenseSpec& spec, const ListedRows& rows, const uint32_t* list, size_t count, uint8_t* inputs,
                    uint8_t* memory) {
  const Tile tile(spec, memory);
  const DenseSpec layer = LayerOf(spec, list, count, tile);
  const float* const x = rows.x + rows.first_row * spec.x_stride;
  Multiply(WorkOf(spec, layer, rows.first_row, rows.rows, x, tile.y, inputs), 0, layer.outputs);
  const bool in_place = IsDense(list, count);
  for (size_t r = 0; r < rows.rows; ++r) {
    float* const y = rows.y + (rows.first_row + r) * spec.y_stride;
    const float* const found = tile.y + r * layer.outputs;
    for (size_t i = 0; i < count; ++i) y[list[i]] = found[in_place ? list[i] - list[0] : i];
  }
}

}  // namespace tarn
