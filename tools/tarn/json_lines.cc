#include "tools/tarn/json_lines.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

// The begin of a long text.
std::string Shown(const std::string& text) {
  constexpr size_t kMost = 60;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// "is 5". Of an array or an object its size: it may be nested without end.
std::string Found(const nlohmann::json& value) {
  return value.is_structured() ? Format("is an %s of %zu", value.type_name(), value.size()) : "is " + Shown(value.dump());
}

// The field of an object, moved: a copy goes down as many calls as the value is deep. Throws Failure.
nlohmann::json FieldOf(const Line& line, const char* key) {
  nlohmann::json object = nlohmann::json::parse(line.text, nullptr, /*allow_exceptions=*/false);
  const std::string expected = std::string(", expected an object with \"") + key + "\"";
  if (line.text.empty()) throw Failure(line.what + ": is empty" + expected);
  if (object.is_discarded()) throw Failure(line.what + ": '" + Shown(line.text) + "' is no JSON of UTF-8" + expected);
  if (!object.is_object()) throw Failure(line.what + ": " + Found(object) + expected);
  if (!object.contains(key)) throw Failure(line.what + ": " + Shown(line.text) + " has no \"" + key + '"' + expected);
  return std::move(object[key]);
}

std::string StringOf(const Line& line, const char* key) {
  const nlohmann::json text = FieldOf(line, key);
  if (!text.is_string()) throw Failure(line.what + ": \"" + key + "\" " + Found(text) + ", expected a string");
  return text.get<std::string>();
}

}  // namespace

std::string TextOfLine(const Line& line) { return StringOf(line, "text"); }

Tokens IdsOfLine(const Line& line) {
  const nlohmann::json ids = FieldOf(line, "ids");
  if (!ids.is_array()) throw Failure(line.what + ": \"ids\" " + Found(ids) + ", expected a list of token ids");
  Tokens tokens;
  for (const nlohmann::json& id : ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      throw Failure(line.what + ": an id " + Found(id) + ", expected a token id");
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

Question QuestionOfLine(const Line& line) {
  Question question{StringOf(line, "context"), {}, 0};
  const nlohmann::json choices = FieldOf(line, "choices"), answer = FieldOf(line, "answer");
  if (!choices.is_array()) throw Failure(line.what + ": \"choices\" " + Found(choices) + ", expected a list of texts");
  if (choices.size() < 2) throw Failure(line.what + Format(": \"choices\" has %zu texts, expected two or more", choices.size()));
  for (const nlohmann::json& choice : choices) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      throw Failure(line.what + Format(": choice %zu ", question.choices.size()) + Found(choice) +
                    ", expected a string that is not empty");
    }
    question.choices.push_back(choice.get<std::string>());
  }
  if (!answer.is_number_unsigned() || answer.get<uint64_t>() >= choices.size()) {
    throw Failure(line.what + ": \"answer\" " + Found(answer) +
                  Format(", expected the number of a choice, from 0 to %zu", choices.size() - 1));
  }
  question.answer = answer.get<size_t>();
  return question;
}

}  // namespace tarn_cli
