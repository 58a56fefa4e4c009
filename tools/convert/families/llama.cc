// llama: rotated positions, RMS norms before each part, a gated MLP; heads may share keys and values.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {

Translation TranslateLlama(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  const LlamaSizes sizes = ReadLlama(config, {2048, 1e-6f, 0}, &translation);
  AddProjections(sizes, &translation.rules);
  translation.config["attention_bias"] = config->fields().Bool("attention_bias", false);
  translation.config["mlp_bias"] = config->fields().Bool("mlp_bias", false);
  translation.config["attention"] = FullAttention(sizes.positions, options, &translation);
  return translation;
}

}  // namespace tarn::convert
