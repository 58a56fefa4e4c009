#include "tools/convert/chat/chat_data.h"

#include "runtime/text/chat_template.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

Span<const char> View(const std::string& text) { return {text.data(), text.size()}; }

ChatTurn TurnOf(const ChatTurnData& turn) { return {View(turn.before), turn.trim_begin, turn.trim_end}; }

ChatRole RoleOf(const std::string& role) {
  if (role == "system") return ChatRole::kSystem;
  return role == "user" ? ChatRole::kUser : ChatRole::kAssistant;
}

}  // namespace

std::string FormatChat(const ChatData& chat, const std::vector<JinjaMessage>& messages) {
  const ChatTemplate views = {chat.has_system,   TurnOf(chat.system),    TurnOf(chat.after_system), TurnOf(chat.first),
                              TurnOf(chat.next), TurnOf(chat.assistant), View(chat.answer)};
  std::vector<ChatMessage> turns;
  turns.reserve(messages.size());
  for (const JinjaMessage& one : messages) turns.push_back({RoleOf(one.role), View(one.content)});
  ChatStage stage = ChatStage::kBegin;
  size_t bytes = 0;
  const Span<const ChatMessage> all = {turns.data(), turns.size()};
  const Status measured = tarn::FormatChat(views, all, &stage, {}, &bytes, {});
  if (measured.code() != TARN_BUFFER_TOO_SMALL) Fail(measured.message());
  std::string text(bytes, '\0');
  const Status written = tarn::FormatChat(views, all, &stage, {text.data(), text.size()}, &bytes, {});
  if (!written.ok()) Fail(written.message());
  return text;
}

}  // namespace tarn::convert
