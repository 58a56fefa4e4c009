#include "runtime/text/chat_template.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/spaces.h"

namespace tarn {
namespace {

bool IsSeparator(char byte) { return byte >= 0x1C && byte <= 0x1F; }

// Counts what there is no room for.
class Writer {
 public:
  explicit Writer(Span<char> text) : text_(text) {}

  void Write(Span<const char> part) {
    const size_t fits = std::min(part.size(), text_.size() - std::min(size_, text_.size()));
    if (fits != 0) std::memcpy(text_.data() + size_, part.data(), fits);
    size_ += part.size();
  }
  size_t size() const { return size_; }

 private:
  Span<char> text_;
  size_t size_ = 0;
};

// The turn of a message of this role in a conversation that is at `stage`; nullptr: there is none.
const ChatTurn* TurnAt(const ChatTemplate& chat, ChatStage stage, bool user_spoke, ChatRole role) {
  if (user_spoke) return role == ChatRole::kAssistant ? &chat.assistant : nullptr;
  if (role == ChatRole::kSystem) return stage == ChatStage::kBegin && chat.has_system ? &chat.system : nullptr;
  if (role != ChatRole::kUser) return nullptr;
  if (stage == ChatStage::kBegin) return &chat.first;
  return stage == ChatStage::kSystem ? &chat.after_system : &chat.next;
}

const char* RoleName(ChatRole role) {
  constexpr const char* kNames[] = {"system", "user", "assistant"};
  return role <= ChatRole::kAssistant ? kNames[static_cast<size_t>(role)] : "unknown";
}

Status WrongTurn(const ChatTemplate& chat, ChatStage stage, bool user_spoke, size_t index, ChatRole role) {
  if (role == ChatRole::kSystem && !chat.has_system) {
    return Error(TARN_INVALID_ARGUMENT, "messages[%zu] is a system text, and the model's chat template takes none", index);
  }
  const char* expected = user_spoke ? "\"assistant\"" : stage == ChatStage::kBegin ? "\"system\" or \"user\"" : "\"user\"";
  return Error(TARN_INVALID_ARGUMENT, "messages[%zu] has the role \"%s\", expected %s here", index, RoleName(role), expected);
}

}  // namespace

Span<const char> TrimSpaces(Span<const char> text, bool at_begin, bool at_end) {
  while (at_begin && !text.empty()) {
    const size_t bytes = IsSeparator(text[0]) ? 1 : SpaceBytes(text);
    if (bytes == 0) break;
    text = text.subspan(bytes, text.size() - bytes);
  }
  while (at_end && !text.empty()) {
    const size_t bytes = IsSeparator(text[text.size() - 1]) ? 1 : SpaceBytesAtEnd(text);
    if (bytes == 0) break;
    text = text.subspan(0, text.size() - bytes);
  }
  return text;
}

Status FormatChat(const ChatTemplate& chat, Span<const ChatMessage> messages, ChatStage* stage, Span<char> text, size_t* bytes,
                  Span<TextRange> contents) {
  Writer writer(text);
  ChatStage at = *stage;
  bool user_spoke = false;  // and what opens the answer is not written yet
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatRole role = messages[i].role;
    const ChatTurn* turn = TurnAt(chat, at, user_spoke, role);
    if (turn == nullptr) return WrongTurn(chat, at, user_spoke, i, role);
    writer.Write(turn->before);
    const size_t begin = writer.size();
    writer.Write(TrimSpaces(messages[i].content, turn->trim_begin, turn->trim_end));
    if (!contents.empty()) contents[i] = {begin, writer.size()};
    user_spoke = role == ChatRole::kUser;
    at = role == ChatRole::kSystem ? ChatStage::kSystem : ChatStage::kAnswer;
  }
  if (user_spoke) writer.Write(chat.answer);
  *bytes = writer.size();
  if (writer.size() > text.size()) {
    return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu bytes, the text has %zu", text.size(), writer.size());
  }
  *stage = at;
  return Ok();
}

}  // namespace tarn
