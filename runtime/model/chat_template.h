// The chat template of a graph, as runtime/text takes it.
#ifndef TARN_RUNTIME_MODEL_CHAT_TEMPLATE_H_
#define TARN_RUNTIME_MODEL_CHAT_TEMPLATE_H_

#include "core/status.h"
#include "runtime/text/chat_template.h"
#include "schema/tarn_generated.h"

namespace tarn {

// Checks the chat template of a graph whose FlatBuffer has been verified, if it has one. Errors: TARN_BAD_FORMAT.
Status CheckChatTemplate(const format::Model& graph);

// Views of one that is there and was checked.
inline ChatTemplate ReadChatTemplate(const format::ChatTemplate& chat) {
  const auto text = [](const flatbuffers::String& one) { return Span<const char>(one.data(), one.size()); };
  const auto turn = [&](const format::ChatTurn* one) -> ChatTurn {
    if (one == nullptr) return {};
    return {text(*one->before()), one->trim_begin(), one->trim_end()};
  };
  return {chat.system() != nullptr, turn(chat.system()),    turn(chat.after_system()), turn(chat.first()),
          turn(chat.next()),        turn(chat.assistant()), text(*chat.answer())};
}

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_CHAT_TEMPLATE_H_
