#include "tools/tarn/json_lines.h"

#include <nlohmann/json.hpp>

#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

// The field of an object. Throws Failure.
nlohmann::json FieldOf(const Line& line, const char* key) {
  const nlohmann::json object = nlohmann::json::parse(line.text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) throw Failure(line.what + ": no JSON, expected an object with \"" + key + "\"");
  if (!object.is_object() || !object.contains(key)) throw Failure(line.what + ": expected an object with \"" + key + "\"");
  return object[key];
}

std::string StringOf(const Line& line, const char* key) {
  const nlohmann::json text = FieldOf(line, key);
  if (!text.is_string()) throw Failure(line.what + ": \"" + key + "\" is no string");
  return text.get<std::string>();
}

}  // namespace

std::string TextOfLine(const Line& line) { return StringOf(line, "text"); }

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

Question QuestionOfLine(const Line& line) {
  Question question{StringOf(line, "context"), {}, 0};
  const nlohmann::json choices = FieldOf(line, "choices"), answer = FieldOf(line, "answer");
  if (!choices.is_array() || choices.size() < 2) throw Failure(line.what + ": \"choices\" is no list of two texts or more");
  for (const nlohmann::json& choice : choices) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      throw Failure(line.what + Format(": choice %zu is no text, expected a string that is not empty", question.choices.size()));
    }
    question.choices.push_back(choice.get<std::string>());
  }
  if (!answer.is_number_unsigned() || answer.get<uint64_t>() >= choices.size()) {
    throw Failure(line.what + Format(": \"answer\" is %.60s, expected the number of a choice, from 0 to %zu", answer.dump().c_str(),
                                     choices.size() - 1));
  }
  question.answer = answer.get<size_t>();
  return question;
}

}  // namespace tarn_cli
