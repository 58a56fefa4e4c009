// The chat templates of tests/data/chat, and what jinja2 makes of them.
#ifndef TARN_TESTS_CONVERT_CHAT_TESTING_H_
#define TARN_TESTS_CONVERT_CHAT_TESTING_H_

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/chat/jinja.h"

namespace tarn::convert {

inline const std::vector<std::pair<std::string, std::string>> kChatTexts = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

struct ChatAnswer {
  std::string name;
  std::vector<JinjaMessage> messages;
  bool generation;
  std::optional<std::string> text;  // nothing: refused
};

inline std::vector<ChatAnswer> ChatAnswers() {
  std::ifstream file("tests/data/chat/answers.jsonl");
  std::vector<ChatAnswer> answers;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json read = nlohmann::json::parse(line);
    ChatAnswer answer{read["template"], {}, read["generation"], std::nullopt};
    for (const auto& one : read["messages"]) answer.messages.push_back({one["role"], one["content"]});
    if (!read["text"].is_null()) answer.text = read["text"].get<std::string>();
    answers.push_back(std::move(answer));
  }
  return answers;
}

inline std::string ChatSource(const std::string& name) {
  std::ifstream file("tests/data/chat/" + name + ".jinja", std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace tarn::convert

#endif  // TARN_TESTS_CONVERT_CHAT_TESTING_H_
