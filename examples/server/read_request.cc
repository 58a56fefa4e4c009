#include "read_request.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "scheduler.h"

namespace tarn_server {
namespace {

using Json = nlohmann::json;  // ordered_json compares each field with all earlier ones: minutes for a body full of fields

// Fields that clients send, and that do not change the text.
constexpr const char* kIgnored[] = {"metadata", "model", "store", "stream_options", "user"};

constexpr size_t kMostQuoted = 40;  // of what a client sent

std::string Quote(const Json& found) {
  if (found.is_null()) return "none";
  if (found.is_structured()) return found.type_name();  // its text may be nested deeper than the stack
  const std::string text = found.dump(-1, ' ', true);   // ASCII: the cut splits no character
  return text.size() <= kMostQuoted ? text : text.substr(0, kMostQuoted) + "...";
}

[[noreturn]] void Refuse(const std::string& field, const Json& found, const std::string& expected) {
  throw Refused{400, field + ": " + Quote(found) + ", expected " + expected};
}

// Moves a field out of `rest`. Null where there is none: clients send null for what they do not set.
Json Take(const char* field, Json* rest) {
  const auto found = rest->find(field);
  if (found == rest->end()) return nullptr;
  Json value = std::move(*found);
  rest->erase(found);
  return value;
}

void TakeNumber(const char* field, Json* rest, float* number) {
  const Json found = Take(field, rest);
  if (found.is_null()) return;
  if (!found.is_number() || std::abs(found.get<double>()) > std::numeric_limits<float>::max()) {
    Refuse(field, found, "a number that a float can hold");
  }
  *number = found.get<float>();
}

template <typename T>
void TakeUnsigned(const char* field, Json* rest, T* number) {
  const Json found = Take(field, rest);
  if (found.is_null()) return;
  constexpr T kMost = std::numeric_limits<T>::max();
  if (!found.is_number_unsigned() || found.get<uint64_t>() > kMost) {
    Refuse(field, found, "an integer of 0 to " + std::to_string(kMost));
  }
  *number = found.get<T>();
}

bool TakeFlag(const char* field, Json* rest) {
  const Json found = Take(field, rest);
  if (!found.is_null() && !found.is_boolean()) Refuse(field, found, "true or false");
  return found == true;
}

std::vector<std::string> TakeStop(Json* rest) {
  const Json found = Take("stop", rest);
  if (found.is_null()) return {};
  if (found.is_string()) return {found.get<std::string>()};
  if (!found.is_array()) Refuse("stop", found, "a string or an array of strings");
  std::vector<std::string> strings;
  for (const Json& string : found) {
    if (!string.is_string()) Refuse("stop[" + std::to_string(strings.size()) + "]", string, "a string");
    strings.push_back(string.get<std::string>());
  }
  return strings;
}

// What is not supported could change the text. Null, false and what is empty ask for nothing.
void RefuseRest(Json* rest) {
  for (const char* field : kIgnored) Take(field, rest);
  for (const auto& [field, value] : rest->items()) {
    if (value.empty() || value == "" || value == false) continue;
    throw Refused{400, field.substr(0, kMostQuoted) + ": not supported, expected no such field"};
  }
}

Json Parse(const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Refused{400, "body: expected a JSON object: " + std::string(error.what()).substr(0, 200)};  // which quotes the body
  }
}

}  // namespace

Body ReadBody(const std::string& text) {
  Json rest = Parse(text);
  if (!rest.is_object()) Refuse("body", rest, "a JSON object");
  Body body;
  Request& request = body.request;
  const Json prompt = Take("prompt", &rest);
  if (!prompt.is_string()) Refuse("prompt", prompt, "a string");
  request.prompt = prompt.get<std::string>();
  request.stop = TakeStop(&rest);
  body.streams = TakeFlag("stream", &rest);
  TakeUnsigned("max_tokens", &rest, &request.max_tokens);
  tarn_sampler_config& chain = request.chain;
  TakeNumber("temperature", &rest, &chain.temperature);
  TakeUnsigned("top_k", &rest, &chain.top_k);
  TakeNumber("top_p", &rest, &chain.top_p);
  TakeNumber("min_p", &rest, &chain.min_p);
  TakeUnsigned("seed", &rest, &chain.seed);
  TakeNumber("frequency_penalty", &rest, &chain.frequency_penalty);
  TakeNumber("presence_penalty", &rest, &chain.presence_penalty);
  for (const char* field : {"n", "best_of"}) {
    const Json count = Take(field, &rest);
    if (!count.is_null() && count != 1) Refuse("n, best_of", count, "1");
  }
  RefuseRest(&rest);
  return body;
}

}  // namespace tarn_server
