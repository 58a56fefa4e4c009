// granite: llama with a factor of embeddings, of what each part adds, of attention logits and of the logits.
#include "tools/convert/families/granite.h"

#include <string>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {

float FoldGranite(ForeignConfig* config, Translation* translation) {
  Fields& fields = config->fields();
  translation->config["embedding_scale"] = fields.PositiveNumber("embedding_multiplier", 1.0f);
  const float residual = fields.Number("residual_multiplier", 1.0f);
  for (const char* part : {"o_proj", "down_proj"}) {
    Fold(part + std::string(".weight"), residual, 0, &translation->rules);
    Fold(part + std::string(".bias"), residual, 0, &translation->rules);
  }
  // The head is linear: its rows are divided before it.
  Fold("model.norm.weight", 1 / fields.PositiveNumber("logits_scaling", 1.0f), 0, &translation->rules);
  if (translation->scale) fields.FailAt("rope_scaling", "only kinds that leave cosines and sines as they are are supported");
  translation->scale = fields.Number("attention_multiplier", 1.0f);
  return residual;
}

Translation TranslateGranite(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const LlamaSizes sizes = ReadLlama(config, {2048, 1e-6f, 0}, &translation);
  AddProjections(sizes, &translation.rules);
  Json& c = translation.config;
  c["attention_bias"] = fields.Bool("attention_bias", false);
  c["mlp_bias"] = fields.Bool("mlp_bias", false);
  FoldGranite(config, &translation);
  c["attention"] = FullAttention(sizes.positions, options, &translation);
  return translation;
}

}  // namespace tarn::convert
