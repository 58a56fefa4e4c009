// C API: conversations. Translation only; the work is in runtime/text/chat_template.cc.
#include "tarn/chat.h"

#include "runtime/capi/handles.h"
#include "runtime/model/chat_template.h"

namespace tarn {
namespace {

static_assert(static_cast<int>(ChatRole::kAssistant) == TARN_CHAT_ASSISTANT, "one numbering");
static_assert(sizeof(TextRange) == sizeof(tarn_text_range), "one layout");

static_assert(sizeof(ChatMessage) == sizeof(tarn_chat_message) && sizeof(ChatRole) == sizeof(tarn_chat_message::role) &&
                  offsetof(ChatMessage, content) == offsetof(tarn_chat_message, text) &&
                  sizeof(Span<const char>) == sizeof(tarn_chat_message) - offsetof(tarn_chat_message, text) &&
                  offsetof(tarn_chat_message, text_bytes) == offsetof(tarn_chat_message, text) + sizeof(const char*),
              "one layout");
static_assert(sizeof(ChatStage) == sizeof(tarn_chat), "one layout");

Result<const format::ChatTemplate*> Find(const tarn_model* model) {
  if (model == nullptr) return NullArgument("model");
  const format::ChatTemplate* chat = ModelOf(model).graph().chat();
  if (chat != nullptr) return chat;
  return Error(TARN_NOT_FOUND, "the model has no chat template: convert it with --chat-template NAME");
}

Status GetInfo(const tarn_model* model, tarn_chat_info* user) {
  if (user == nullptr) return NullArgument("info");
  TARN_ASSIGN_OR_RETURN(const format::ChatTemplate* chat, Find(model));
  tarn_chat_info info = TARN_CHAT_INFO_INIT;
  info.name = chat->name()->c_str();
  info.takes_system = chat->system() != nullptr ? 1 : 0;
  if (chat->end_tokens() != nullptr) {
    info.end_tokens = reinterpret_cast<const int32_t*>(chat->end_tokens()->data());  // checked to fit
    info.end_token_count = chat->end_tokens()->size();
  }
  return WriteStruct(info, user);
}

struct ChatOutput {
  Span<char> text;
  size_t* bytes;
  tarn_text_range* contents;
};

Status FormatMessages(const tarn_model* model, tarn_chat* chat, Span<const tarn_chat_message> messages, const ChatOutput& output) {
  TARN_ASSIGN_OR_RETURN(const format::ChatTemplate* read, Find(model));
  if (chat == nullptr) return NullArgument("chat");
  if (messages.data() == nullptr && !messages.empty()) return NullArgument("messages");
  if (output.text.data() == nullptr && !output.text.empty()) return NullArgument("text");
  if (output.bytes == nullptr) return NullArgument("text_bytes");
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].text == nullptr && messages[i].text_bytes != 0) {
      return Error(TARN_INVALID_ARGUMENT, "messages[%zu].text is NULL", i);
    }
  }
  if (chat->stage > static_cast<uint32_t>(ChatStage::kAnswer)) {
    return Error(TARN_INVALID_ARGUMENT, "the chat's stage is %u: zero it to begin a conversation", chat->stage);
  }
  auto stage = static_cast<ChatStage>(chat->stage);
  TARN_RETURN_IF_ERROR(FormatChat(
      ReadChatTemplate(*read), {reinterpret_cast<const ChatMessage*>(messages.data()), messages.size()}, &stage, output.text,
      output.bytes, {reinterpret_cast<TextRange*>(output.contents), output.contents == nullptr ? 0 : messages.size()}));
  chat->stage = static_cast<uint32_t>(stage);
  return Ok();
}

}  // namespace
}  // namespace tarn

tarn_status tarn_chat_get_info(const tarn_model* model, tarn_chat_info* info, tarn_error* error) {
  return tarn::Report(tarn::GetInfo(model, info), error);
}

tarn_status tarn_chat_format(const tarn_model* model, tarn_chat* chat, const tarn_chat_message* messages, size_t count, char* text,
                             size_t capacity, size_t* text_bytes, tarn_text_range* contents, tarn_error* error) {
  return tarn::Report(tarn::FormatMessages(model, chat, {messages, count}, {{text, capacity}, text_bytes, contents}), error);
}
