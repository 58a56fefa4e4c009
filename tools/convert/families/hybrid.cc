#include "tools/convert/families/hybrid.h"

#include <utility>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr const char* kFull = "full_attention";

// The name that transformers 5 has for a type of layer: it reads the older ones in every family.
Json NewerType(const Json& type) {
  if (type == "attention") return kFull;
  return type == "mamba" ? Json("linear_attention") : type;
}

}  // namespace

std::vector<bool> FullLayers(Fields* fields, uint32_t layers, const char* other,
                             const std::function<bool(uint32_t layer)>& by_number) {
  std::vector<bool> full;
  const Json* types = fields->Find("layer_types");
  if (types == nullptr) {
    for (uint32_t i = 0; i < layers; ++i) full.push_back(by_number(i));
    return full;
  }
  if (!types->is_array() || types->size() != layers) {
    fields->FailAt("layer_types", ValueText(*types) + " is not a list of num_hidden_layers = " + std::to_string(layers) + " types");
  }
  for (const Json& given : *types) {
    const Json type = NewerType(given);
    if (type != kFull && type != other) {
      fields->FailAt("layer_types", ValueText(given) + " is not supported, expected \"" + kFull + "\" or \"" + other + "\"");
    }
    full.push_back(type == kFull);
  }
  return full;
}

void SetLayers(const std::vector<bool>& has_softmax, const Json& attention, const Json& block, const std::function<Json()>& full,
               Translation* translation) {
  Json& c = translation->config;
  const bool rope = c.value("position_embedding", "none") == "rope";
  for (const char* list : {"attention", "layer_blocks", "layer_rope"}) c[list] = Json::array();
  for (const bool softmax : has_softmax) {
    c["attention"].push_back(softmax ? full() : attention);
    c["layer_blocks"].push_back(softmax ? Json() : block);
    c["layer_rope"].push_back(softmax ? Json() : Json(false));
  }
  if (!rope) c.erase("layer_rope");
}

void AddLayerRules(const std::vector<bool>& kinds, bool of, const std::vector<TensorRule>& rules, std::vector<TensorRule>* out) {
  std::vector<TensorRule> made;
  for (size_t layer = 0; layer < kinds.size(); ++layer) {
    if (kinds[layer] != of) continue;
    for (TensorRule rule : rules) {
      TensorRule plus = rule.plus == nullptr ? TensorRule() : *rule.plus;
      for (std::string* name : {&rule.from, &rule.to, &plus.from}) {
        const size_t star = name->find('*');
        if (star != std::string::npos) name->replace(star, 1, std::to_string(layer));
      }
      if (rule.plus != nullptr) rule.plus = std::make_shared<const TensorRule>(std::move(plus));
      made.push_back(std::move(rule));
    }
  }
  out->insert(out->begin(), made.begin(), made.end());
}

TensorRule Rows(const std::string& from, const std::string& to, const RowGroups& rows, uint32_t all) {
  auto order = std::make_shared<std::vector<uint32_t>>();
  order->reserve(size_t{rows.groups} * rows.count);
  for (uint32_t group = 0; group < rows.groups; ++group) {
    for (uint32_t i = 0; i < rows.count; ++i) order->push_back(rows.first + group * rows.stride + i);
  }
  TensorRule rule{from, to};
  rule.order = std::move(order);
  rule.all_rows = all;
  return rule;
}

}  // namespace tarn::convert
