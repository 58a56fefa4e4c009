// What tarn-convert says about what it wrote, in words.
#ifndef TARN_TOOLS_CONVERT_SUMMARY_H_
#define TARN_TOOLS_CONVERT_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/build/graph_builder.h"
#include "tools/convert/config/config.h"

namespace tarn::convert {

std::string BytesText(uint64_t bytes);

// "rfa x 4"; "rfa x 3, softmax x 1"; "encoder: softmax x 6; decoder: rfa x 6; cross: rfa x 6"
std::string SystemsText(const ModelConfig& config);

// What states are stored as: "f16"; "none"; "decoder: f32 x 6; cross: int8 x 6"
std::string StatesText(const ModelConfig& config);

// "int4", "int4 (int8: model.embeddings.weight; f32: model.layers.0.attn.o_proj.weight and 3 more)"
std::string PrecisionText(const std::vector<Matrix>& matrices, const std::string& quant);

// Which matrices became int8 instead of a narrower type; empty if none did.
std::string NarrowText(const std::vector<Matrix>& matrices);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_SUMMARY_H_
