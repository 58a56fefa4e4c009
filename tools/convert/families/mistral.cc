// mistral: llama with a window in all layers. The window of a config that does not name one is 4,096; null switches it off.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {

Translation TranslateMistral(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  const LlamaSizes sizes = ReadLlama(config, {131072, 1e-6f, 8}, &translation);
  config->Require("attention_bias", false);
  AddProjections(sizes, &translation.rules);
  const bool full = config->IsNull("sliding_window");
  const uint32_t window = config->fields().Size("sliding_window", 4096);
  translation.config["attention"] =
      full ? FullAttention(sizes.positions, options, &translation) : WindowAttention(window, translation);
  return translation;
}

}  // namespace tarn::convert
