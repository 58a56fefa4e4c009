// phi3: llama with q, k and v in one projection, gate and up in another, and a window in all layers if the config has one.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {

Translation TranslatePhi3(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  fields.Find("original_max_position_embeddings");  // of scaled positions alone
  const uint32_t positions = ReadLlama(config, {4096, 1e-5f, 0}, &translation).positions;
  config->Require("attention_bias", false);
  const Json& c = translation.config;
  const auto heads = c["num_heads"].get<uint32_t>(), kv_heads = c["num_kv_heads"].get<uint32_t>();
  const uint32_t head_dim = c.contains("head_dim") ? c["head_dim"].get<uint32_t>() : c["hidden_size"].get<uint32_t>() / heads;
  const auto inner = c["intermediate_size"].get<uint32_t>();

  std::vector<TensorRule>& rules = translation.rules;
  uint32_t row = 0;
  const uint32_t q = heads * head_dim, kv = kv_heads * head_dim;
  for (const auto& [name, rows] : {std::pair{"q", q}, {"k", kv}, {"v", kv}}) {
    const std::string to = std::string("model.layers.*.attn.") + name + "_proj.weight";
    rules.push_back({"layers.*.self_attn.qkv_proj.weight", to, false, row, rows, q + 2 * kv});
    row += rows;
  }
  rules.push_back({"layers.*.mlp.gate_up_proj.weight", "model.layers.*.mlp.gate_proj.weight", false, 0, inner, 2 * inner});
  rules.push_back({"layers.*.mlp.gate_up_proj.weight", "model.layers.*.mlp.up_proj.weight", false, inner, inner, 2 * inner});

  const bool windowed = fields.Has("sliding_window");
  const Json attention =
      windowed ? WindowAttention(fields.Size("sliding_window"), translation) : FullAttention(positions, options, &translation);
  translation.config["attention"] = attention;
  return translation;
}

}  // namespace tarn::convert
