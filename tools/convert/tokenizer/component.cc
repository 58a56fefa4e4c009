#include "tools/convert/tokenizer/component.h"

#include "tools/convert/json/error.h"

namespace tarn::convert {

std::string TypeOf(const Json& object, const std::string& where, const std::string& types) {
  if (!object.is_object() || !object.contains("type") || !object["type"].is_string())
    Fail(where, ": an object with a \"type\" expected");
  std::string type = object["type"];
  if ((", " + types + ",").find(", " + type + ",") != std::string::npos) return type;
  Fail(where, ".type: \"", type, "\" is not supported, one of ", types, " expected");
}

std::vector<std::pair<const Json*, std::string>> Parts(const Json& object, const std::string& where, const char* key) {
  if (!object.is_object() || object.value("type", Json()) != "Sequence") return {{&object, where}};
  if (!object.contains(key) || !object[key].is_array()) Fail(where, ".", key, ": a list expected");
  std::vector<std::pair<const Json*, std::string>> parts;
  for (const Json& part : object[key]) {
    const auto nested = Parts(part, where + "." + key + "[" + std::to_string(parts.size()) + "]", key);
    parts.insert(parts.end(), nested.begin(), nested.end());
  }
  return parts;
}

std::optional<uint32_t> TokenId(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= Fields::kMaxSize) return std::nullopt;
  return value.get<uint32_t>();
}

}  // namespace tarn::convert
