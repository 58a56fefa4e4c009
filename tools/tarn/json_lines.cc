#include "tools/tarn/json_lines.h"

#include <nlohmann/json.hpp>

#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

// The field of an object. Throws Failure.
nlohmann::json FieldOf(const Line& line, const char* key) {
  const nlohmann::json object = nlohmann::json::parse(line.text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) throw Failure(line.what + ": no JSON, expected an object with \"" + key + "\"");
  if (!object.is_object() || !object.contains(key)) throw Failure(line.what + ": expected an object with \"" + key + "\"");
  return object[key];
}

}  // namespace

std::string TextOfLine(const Line& line) {
  const nlohmann::json text = FieldOf(line, "text");
  if (!text.is_string()) throw Failure(line.what + ": \"text\" is no string");
  return text.get<std::string>();
}

Tokens IdsOfLine(const Line& line) {
  const nlohmann::json ids = FieldOf(line, "ids");
  if (!ids.is_array()) throw Failure(line.what + ": \"ids\" is no list");
  Tokens tokens;
  for (const nlohmann::json& id : ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      throw Failure(line.what + ": id " + id.dump() + " is no token id");
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

}  // namespace tarn_cli
