// smollm3: llama without rope in some layers, which may have a window.
#include "tools/convert/families/decoder.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Which layers have rope: no_rope_layers has 1 for them, against its name; or else all but every fourth.
std::vector<bool> LayersWithRope(Fields* fields, uint32_t layers) {
  const uint32_t interval = fields->Size("no_rope_layer_interval", 4);
  std::vector<bool> with_rope;
  const Json* list = fields->Find("no_rope_layers");
  if (list == nullptr) {
    for (uint32_t i = 0; i < layers; ++i) with_rope.push_back((i + 1) % interval != 0);
    return with_rope;
  }
  if (!list->is_array() || list->size() != layers) {
    fields->FailAt("no_rope_layers",
                   ValueText(*list) + " is not a list of num_hidden_layers = " + std::to_string(layers) + " numbers");
  }
  for (const Json& value : *list) {
    if (value != 0 && value != 1) fields->FailAt("no_rope_layers", ValueText(value) + " is neither 0 nor 1");
    with_rope.push_back(value == 1);
  }
  return with_rope;
}

}  // namespace

Translation TranslateSmolLm3(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  LlamaDefaults defaults = {32768, 1e-6f, 4};
  defaults.tied = true;
  defaults.theta = 2e6f;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  AddProjections(sizes, &translation.rules);
  Json& c = translation.config;
  c["attention_bias"] = fields.Bool("attention_bias", false);
  c["mlp_bias"] = fields.Bool("mlp_bias", false);
  const std::vector<bool> with_rope = LayersWithRope(&fields, c["num_layers"]);
  for (const bool rope : with_rope) c["layer_rope"].push_back(rope ? Json() : Json(false));
  const bool has_window = fields.Bool("use_sliding_window", false) && fields.Has("sliding_window");
  const uint32_t window = fields.Size("sliding_window", 1);
  fields.Find("max_window_layers");  // what has a window follows from layer_types, or from rope
  const std::vector<bool> windowed =
      WindowedLayers(&fields, c["num_layers"], has_window, [&](uint32_t layer) { return has_window && !with_rope[layer]; });
  c["attention"] = AttentionOfLayers(windowed, window, sizes.positions, options, &translation);
  // The scale is that of cosines and sines.
  for (size_t i = 0; i < with_rope.size(); ++i) {
    if (!with_rope[i]) c["attention"][i].erase("scale");
  }
  return translation;
}

}  // namespace tarn::convert
