#include "tools/convert/chat/known_templates.h"

#include <algorithm>
#include <iterator>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Whose contents lose the spaces around them. Of kFolded the user's text behind a system text keeps those before it.
enum class Trim : uint8_t { kNone, kFolded, kTurns, kAll };

struct Known {
  const char* name;
  Trim trim;
  const char* system;        // nullptr: there is no system text
  const char* after_system;  // up to the user's text
  const char* first;
  const char* next;
  const char* assistant;
  const char* answer;
};

#define CHATML_NEXT "<|im_end|>\n<|im_start|>user\n"
#define CHATML_ANSWER "<|im_end|>\n<|im_start|>assistant\n"
#define LLAMA3_ROLE(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define DEEPSEEK_BOS \
  "<\xEF\xBD\x9C"    \
  "begin\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"
#define DEEPSEEK_EOS \
  "<\xEF\xBD\x9C"    \
  "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"
#define DEEPSEEK_USER "<\xEF\xBD\x9CUser\xEF\xBD\x9C>"
#define DEEPSEEK_ANSWER \
  "<\xEF\xBD\x9C"       \
  "Assistant\xEF\xBD\x9C>"

// As the documentation of the models has them; docs/chat.md lists them.
constexpr Known kKnown[] = {
    {"chatml", Trim::kNone, "<|im_start|>system\n", CHATML_NEXT, "<|im_start|>user\n", CHATML_NEXT, CHATML_ANSWER, CHATML_ANSWER},
    {"qwen2", Trim::kNone, "<|im_start|>system\n", CHATML_NEXT,
     "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n", CHATML_NEXT, CHATML_ANSWER, CHATML_ANSWER},
    {"llama2", Trim::kFolded, "<s>[INST] <<SYS>>\n", "\n<</SYS>>\n\n", "<s>[INST] ", " </s><s>[INST] ", " [/INST] ", " [/INST]"},
    {"llama3", Trim::kAll, "<|begin_of_text|>" LLAMA3_ROLE("system"), "<|eot_id|>" LLAMA3_ROLE("user"),
     "<|begin_of_text|>" LLAMA3_ROLE("user"), "<|eot_id|>" LLAMA3_ROLE("user"), "<|eot_id|>" LLAMA3_ROLE("assistant"),
     "<|eot_id|>" LLAMA3_ROLE("assistant")},
    {"mistral-v1", Trim::kNone, "<s> [INST] ", "\n\n", "<s> [INST] ", "</s> [INST] ", " [/INST] ", " [/INST]"},
    {"mistral-v3", Trim::kNone, nullptr, nullptr, "<s>[INST] ", "</s>[INST] ", "[/INST] ", "[/INST]"},
    {"mistral-v3-tekken", Trim::kNone, nullptr, nullptr, "<s>[INST]", "</s>[INST]", "[/INST]", "[/INST]"},
    {"mistral-v7", Trim::kNone, "<s>[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT][INST] ", "<s>[INST] ", "</s>[INST] ", "[/INST] ",
     "[/INST]"},
    {"mistral-v7-tekken", Trim::kNone, "<s>[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT][INST]", "<s>[INST]", "</s>[INST]", "[/INST]",
     "[/INST]"},
    {"gemma", Trim::kTurns, nullptr, nullptr, "<bos><start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>user\n",
     "<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>\n<start_of_turn>model\n"},
    {"gemma3", Trim::kTurns, "<bos><start_of_turn>user\n", "\n\n", "<bos><start_of_turn>user\n",
     "<end_of_turn>\n<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>\n<start_of_turn>model\n"},
    {"zephyr", Trim::kNone, "<|system|>\n", "</s>\n<|user|>\n", "<|user|>\n", "</s>\n<|user|>\n", "</s>\n<|assistant|>\n",
     "</s>\n<|assistant|>\n"},
    {"phi3", Trim::kNone, "<|system|>\n", "<|end|>\n<|user|>\n", "<|user|>\n", "<|end|>\n<|user|>\n", "<|end|>\n<|assistant|>\n",
     "<|end|>\n<|assistant|>\n"},
    {"deepseek", Trim::kNone, DEEPSEEK_BOS, DEEPSEEK_USER, DEEPSEEK_BOS DEEPSEEK_USER, DEEPSEEK_EOS DEEPSEEK_USER, DEEPSEEK_ANSWER,
     DEEPSEEK_ANSWER},
    {"rwkv", Trim::kAll, "System: ", "\n\nUser: ", "User: ", "\n\nUser: ", "\n\nAssistant: ", "\n\nAssistant:"},
};

}  // namespace

std::vector<std::string> KnownTemplateNames() {
  std::vector<std::string> names;
  for (const Known& one : kKnown) names.emplace_back(one.name);
  return names;
}

ChatData KnownTemplate(const std::string& name) {
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& one) { return name == one.name; });
  if (found == std::end(kKnown)) Fail("\"", name, "\" is no chat template");
  const bool turns = found->trim != Trim::kNone, system = found->trim == Trim::kAll;
  ChatData chat;
  chat.name = name;
  chat.has_system = found->system != nullptr;
  if (chat.has_system) {
    chat.system = {found->system, system, system};
    chat.after_system = {found->after_system, turns && found->trim != Trim::kFolded, turns};
  }
  chat.first = {found->first, turns, turns};
  chat.next = {found->next, turns, turns};
  chat.assistant = {found->assistant, turns, turns};
  chat.answer = found->answer;
  return chat;
}

}  // namespace tarn::convert
