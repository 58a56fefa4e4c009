// A conversation as the text that a model was trained on.
//
//   [system] first | after_system, [assistant, next]..., answer
//
// A turn is a text of the template and the content behind it. So the text of new turns follows from the turn before them alone, and
// the texts of several calls, one after the other, are the text of one call.
#ifndef TARN_RUNTIME_TEXT_CHAT_TEMPLATE_H_
#define TARN_RUNTIME_TEXT_CHAT_TEMPLATE_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/text/pattern.h"

namespace tarn {

constexpr size_t kMaxChatTextBytes = 1u << 14;  // of a template, before a content

// Numbers are those of tarn_chat_role.
enum class ChatRole : uint32_t { kSystem = 0, kUser = 1, kAssistant = 2 };

struct ChatTurn {
  Span<const char> before;
  bool trim_begin, trim_end;  // the content without spaces there
};

// Views (schema/tarn.fbs, ChatTemplate).
struct ChatTemplate {
  bool has_system;
  ChatTurn system, after_system, first, next, assistant;
  Span<const char> answer;
};

struct ChatMessage {
  ChatRole role;
  Span<const char> content;
};

// How far a conversation is. Numbers are those of tarn_chat.
enum class ChatStage : uint32_t { kBegin = 0, kSystem = 1, kAnswer = 2 };

// Writes the text of new turns, up to the content of the last one; after one of the user, with what opens the answer. Sets `*bytes`
// to its size, `contents[i]`, unless it is empty, to where the content of message i lies, and `*stage` to what follows.
// Errors: TARN_INVALID_ARGUMENT (a turn that cannot stand there), TARN_BUFFER_TOO_SMALL (`*bytes` is set). `*stage` is then
// unchanged.
Status FormatChat(const ChatTemplate& chat, Span<const ChatMessage> messages, ChatStage* stage, Span<char> text, size_t* bytes,
                  Span<TextRange> contents);

// `text` without what Python's str.strip() removes: White_Space and U+001C to U+001F.
Span<const char> TrimSpaces(Span<const char> text, bool at_begin, bool at_end);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_CHAT_TEMPLATE_H_
