// gpt2: learned positions, layer norms, biases everywhere; its matrices are stored as [in, out], those of q, k and v as one.
#include <cmath>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

Json LayerAttention(Json attention, bool scaled, bool by_layer, uint32_t head_dim, uint32_t layer) {
  if (scaled && !by_layer) return attention;
  const double scale = scaled ? 1 / std::sqrt(static_cast<double>(head_dim)) : 1;
  attention["scale"] = by_layer ? scale / (layer + 1) : scale;
  return attention;
}

}  // namespace

Translation TranslateGpt2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  fields.Find("n_ctx");                    // an older name of n_positions
  fields.Find("reorder_and_upcast_attn");  // the order of the same operations
  const auto [hidden, layers, heads, positions] =
      ReadGpt(config, {"n_embd", "n_layer", "n_head", "n_inner", "n_positions", 768, 12, 12, 1024}, &translation);
  const bool scaled = fields.Bool("scale_attn_weights", true), by_layer = fields.Bool("scale_attn_by_inverse_layer_idx", false);
  Json attention = Json::array();
  for (uint32_t i = 0; i < layers; ++i) {
    attention.push_back(LayerAttention(FullAttention(positions, options, &translation), scaled, by_layer, hidden / heads, i));
  }
  translation.config["attention"] = attention;

  std::vector<TensorRule>& rules = translation.rules;
  rules.push_back({"h.*.attn.bias", ""});  // the mask, of older versions
  rules.push_back({"h.*.attn.masked_bias", ""});
  AddBoth("h.*.attn.c_proj", "model.layers.*.attn.o_proj", &rules, /*transposed=*/true);
  AddBoth("h.*.mlp.c_fc", "model.layers.*.mlp.up_proj", &rules, /*transposed=*/true);
  AddBoth("h.*.mlp.c_proj", "model.layers.*.mlp.down_proj", &rules, /*transposed=*/true);
  uint32_t row = 0;
  for (const char* projection : {"q", "k", "v"}) {
    const std::string to = std::string("model.layers.*.attn.") + projection + "_proj";
    rules.push_back({"h.*.attn.c_attn.weight", to + ".weight", true, row, hidden, 3 * hidden});
    rules.push_back({"h.*.attn.c_attn.bias", to + ".bias", false, row, hidden, 3 * hidden});
    row += hidden;
  }
  return translation;
}

}  // namespace tarn::convert
