// qwen2 and qwen3: llama; the layers from max_window_layers on may have a window. qwen2 has biases on q, k and v, qwen3 norms of
// every head of q and k.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

void SetAttention(ForeignConfig* config, const FamilyOptions& options, uint32_t positions, Translation* translation) {
  Fields& fields = config->fields();
  const bool has_window = fields.Bool("use_sliding_window", false) && !config->IsNull("sliding_window");
  const uint32_t window = fields.Size("sliding_window", 4096), layers = translation->config["num_layers"];
  const auto first = static_cast<uint32_t>(fields.Integer("max_window_layers", 0, Fields::kMaxSize, 28));
  const std::vector<bool> windowed =
      WindowedLayers(&fields, layers, has_window, [&](uint32_t layer) { return has_window && layer >= first; });
  translation->config["attention"] = AttentionOfLayers(windowed, window, positions, options, translation);
}

}  // namespace

Translation TranslateQwen2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  const LlamaSizes sizes = ReadLlama(config, {32768, 1e-6f, 32}, &translation);
  AddProjections(sizes, &translation.rules);
  translation.config["attention_bias"] = {"q", "k", "v"};
  config->Require("use_mrope", false);
  SetAttention(config, options, sizes.positions, &translation);
  return translation;
}

Translation TranslateQwen3(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  const LlamaSizes sizes = ReadLlama(config, {32768, 1e-6f, 32, 128}, &translation);
  AddProjections(sizes, &translation.rules);
  translation.config["attention_bias"] = config->fields().Bool("attention_bias", false);
  translation.config["qk_norm"] = "head";
  AddQkNorms(&translation.rules);
  SetAttention(config, options, sizes.positions, &translation);
  return translation;
}

}  // namespace tarn::convert
