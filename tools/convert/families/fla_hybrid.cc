// Layers of softmax attention among those of a model of flash-linear-attention: field `attn` of its config.json.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/families/decoder.h"
#include "tools/convert/families/fla.h"
#include "tools/convert/json/error.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// Numbers of layers. Those past the last one have no effect.
std::set<uint32_t> ReadLayers(Fields* attn, uint32_t layers) {
  const Json* list = attn->Find("layers");
  const auto is_number = [](const Json& number) { return number.is_number_unsigned(); };
  if (list == nullptr || !list->is_array() || !std::all_of(list->begin(), list->end(), is_number)) {
    attn->FailAt("layers",
                 (list == nullptr ? "it is missing, expected" : ValueText(*list) + " is not") + std::string(" a list of numbers"));
  }
  std::set<uint32_t> numbers;
  for (const Json& number : *list) {
    if (number.get<uint64_t>() < layers) numbers.insert(number.get<uint32_t>());
  }
  return numbers;
}

// Zeros stand in for tensors that linear layers have not; the others want none.
void KeepZerosOut(const std::set<uint32_t>& softmax, std::vector<TensorRule>* rules) {
  std::vector<TensorRule> kept;
  for (const TensorRule& rule : *rules) {
    const size_t star = rule.to.find('*');
    if (rule.zeros.empty() || star == std::string::npos) {
      kept.push_back(rule);
      continue;
    }
    for (uint32_t layer = 0; layer < rule.layers; ++layer) {
      if (softmax.count(layer) != 0) continue;
      kept.push_back(rule);
      kept.back().to.replace(star, 1, std::to_string(layer));
      kept.back().layers = 1;
    }
  }
  *rules = std::move(kept);
}

}  // namespace

uint32_t FlaPositions(Fields* fields) { return fields->Size("max_position_embeddings", 2048); }

Translation WithFlaAttention(ForeignConfig* config, const FamilyOptions& options, Translation translation) {
  Fields& fields = config->fields();
  const Json* given = fields.Find("attn");
  if (given == nullptr) return translation;
  const std::string where = fields.where() + ": attn";
  const Json object = WithoutNulls(*given, where);
  Fields attn(object, where);
  Json& ours = translation.config;
  const auto layers = ours["num_layers"].get<uint32_t>(), hidden = ours["hidden_size"].get<uint32_t>();
  const std::set<uint32_t> softmax = ReadLayers(&attn, layers);
  const uint32_t heads = attn.Size("num_heads", std::nullopt, kMaxHeads), kv_heads = attn.Size("num_kv_heads", heads, kMaxHeads);
  if (hidden % heads != 0 || heads % kv_heads != 0) {
    attn.FailAt("num_heads", std::to_string(heads) + " heads of hidden_size = " + std::to_string(hidden) + " and " +
                                 std::to_string(kv_heads) + " of k and v: expected numbers that divide each other");
  }
  const bool bias = attn.Bool("qkv_bias", false);
  const Json window = attn.Has("window_size") ? WindowAttention(attn.Size("window_size"), translation) : Json();
  const float theta = attn.PositiveNumber("rope_theta", 10000.0f);
  attn.Finish();
  if (softmax.empty()) return translation;
  const Json linear = ours["attention"], linear_rope = ours["position_embedding"] == "rope" ? Json() : Json(false);
  Json own = {{"num_heads", heads}, {"num_kv_heads", kv_heads}};
  if (bias) own["attention_bias"] = {"q", "k", "v"};
  Json attention = Json::array(), blocks = Json::array(), ropes = Json::array();
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const bool is_linear = softmax.count(layer) == 0;
    blocks.push_back(is_linear ? Json() : own);
    ropes.push_back(is_linear ? linear_rope : Json(theta));
    if (is_linear) {
      attention.push_back(linear);
    } else {
      attention.push_back(!window.is_null() ? window : FullAttention(FlaPositions(&fields), options, &translation));
    }
  }
  ours["attention"] = attention;
  ours["layer_blocks"] = blocks;
  ours["layer_rope"] = ropes;
  ours["position_embedding"] = "rope";
  KeepZerosOut(softmax, &translation.rules);
  for (const std::string part : {"q", "k", "v"}) AddAttnRule(part + "_proj.bias", part + "_proj.bias", &translation);
  return translation;
}

}  // namespace tarn::convert
