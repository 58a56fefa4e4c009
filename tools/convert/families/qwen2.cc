// qwen2: llama with biases on q, k and v; the layers from max_window_layers on may have a window.
#include "tools/convert/families/decoder.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Which layers have a window: by layer_types, which newer versions write, or else by their number.
std::vector<bool> WindowedLayers(Fields* fields, uint32_t layers, bool use_window) {
  const auto first = static_cast<uint32_t>(fields->Integer("max_window_layers", 0, Fields::kMaxSize, 28));
  std::vector<bool> windowed;
  const Json* types = fields->Find("layer_types");
  if (types == nullptr) {
    for (uint32_t i = 0; i < layers; ++i) windowed.push_back(use_window && i >= first);
    return windowed;
  }
  if (!types->is_array() || types->size() != layers) {
    fields->FailAt("layer_types", ValueText(*types) + " is not a list of num_hidden_layers = " + std::to_string(layers) + " types");
  }
  for (const Json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fields->FailAt("layer_types", ValueText(type) + " is not supported, expected \"full_attention\" or \"sliding_attention\"");
    }
    if (type == "sliding_attention" && !use_window)
      fields->FailAt("layer_types", "a layer has a window, but use_sliding_window or sliding_window says that there is none");
    windowed.push_back(type == "sliding_attention");
  }
  return windowed;
}

}  // namespace

Translation TranslateQwen2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const uint32_t positions = ReadLlama(config, {32768, 1e-6f, 32}, &translation);
  AddProjections(&translation.rules);
  const auto layers = translation.config["num_layers"].get<uint32_t>();
  translation.config["attention_bias"] = true;
  AddZeroBiases("o", translation.config["hidden_size"], layers, &translation.rules);
  config->Require("use_mrope", false);

  const bool use_window = fields.Bool("use_sliding_window", false) && !config->IsNull("sliding_window");
  const uint32_t window = fields.Size("sliding_window", 4096);
  Json attention = Json::array();
  for (const bool windowed : WindowedLayers(&fields, layers, use_window)) {
    attention.push_back(windowed ? WindowAttention(window, translation) : FullAttention(positions, options, &translation));
  }
  translation.config["attention"] = attention;
  return translation;
}

}  // namespace tarn::convert
