// A chat template in the form that a model file holds (schema/tarn.fbs, ChatTemplate).
#ifndef TARN_TOOLS_CONVERT_CHAT_CHAT_DATA_H_
#define TARN_TOOLS_CONVERT_CHAT_CHAT_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/chat/jinja.h"

namespace tarn::convert {

struct ChatTurnData {
  std::string before;
  bool trim_begin = false, trim_end = false;
};

struct ChatData {
  std::string name;
  bool has_system = false;
  ChatTurnData system, after_system, first, next, assistant;
  std::string answer;
  std::vector<uint32_t> end_tokens;
};

// The text of a conversation that ends with the user's turn, by the code of the runtime.
std::string FormatChat(const ChatData& chat, const std::vector<JinjaMessage>& messages);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_CHAT_DATA_H_
