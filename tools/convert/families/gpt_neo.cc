// gpt_neo: gpt2 with its own projections, logits that are not scaled, and a window in the layers that it calls local.
#include "tools/convert/families/decoder.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// [[["global", "local"], 2]]: the names in turn, twice.
std::vector<std::string> LayerTypes(Fields* fields, uint32_t layers) {
  const Json* runs = fields->Find("attention_types");
  fields->Find("attention_layers");  // the same, written out
  std::vector<std::string> types;
  const auto fail = [&](const std::string& what) {
    fields->FailAt("attention_types", (runs == nullptr ? "nothing" : ValueText(*runs)) + what);
  };
  if (runs == nullptr || !runs->is_array()) fail(" is not a list of [[names], count]");
  for (const Json& run : *runs) {
    const bool fits = run.is_array() && run.size() == 2 && run[0].is_array() && run[1].is_number_unsigned();
    if (!fits || run[1].get<uint64_t>() > layers) fail(" is not a list of [[names], count]");
    for (const Json& name : run[0]) {
      if (name != "global" && name != "local") fail(": expected \"global\" or \"local\"");
    }
    for (uint64_t i = 0; i < run[1].get<uint64_t>() * run[0].size() && types.size() < layers; ++i) {
      types.push_back(run[0][i % run[0].size()]);
    }
  }
  if (types.size() != layers) fail(" names fewer than num_layers = " + std::to_string(layers));
  return types;
}

}  // namespace

Translation TranslateGptNeo(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const GptSizes sizes = ReadGpt(
      config, {"hidden_size", "num_layers", "num_heads", "intermediate_size", "max_position_embeddings", 2048, 24, 16, 2048},
      &translation);
  const uint32_t window = fields.Size("window_size", 256);
  Json attention = Json::array();
  for (const std::string& type : LayerTypes(&fields, sizes.layers)) {
    attention.push_back(type == "local" ? WindowAttention(window, translation)
                                        : FullAttention(sizes.positions, options, &translation));
    attention.back()["scale"] = 1.0;
  }
  translation.config["attention"] = attention;
  translation.config["attention_bias"] = {"o"};

  std::vector<TensorRule>& rules = translation.rules;
  rules.push_back({"h.*.attn.attention.bias", ""});  // the mask, of older versions
  rules.push_back({"h.*.attn.attention.masked_bias", ""});
  for (const char* projection : {"q_proj", "k_proj", "v_proj"}) {
    const std::string name = projection;
    rules.push_back({"h.*.attn.attention." + name + ".weight", "model.layers.*.attn." + name + ".weight"});
  }
  AddBoth("h.*.attn.attention.out_proj", "model.layers.*.attn.o_proj", &rules);
  AddBoth("h.*.mlp.c_fc", "model.layers.*.mlp.up_proj", &rules);
  AddBoth("h.*.mlp.c_proj", "model.layers.*.mlp.down_proj", &rules);
  return translation;
}

}  // namespace tarn::convert
