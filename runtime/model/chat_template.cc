#include "runtime/model/chat_template.h"

namespace tarn {
namespace {

Status CheckText(const char* what, const flatbuffers::String& text) {
  if (text.size() <= kMaxChatTextBytes) return Ok();
  return Error(TARN_BAD_FORMAT, "chat template: '%s' has %u bytes, at most %zu expected", what, text.size(), kMaxChatTextBytes);
}

}  // namespace

Status CheckChatTemplate(const format::Model& graph) {
  const format::ChatTemplate* chat = graph.chat();
  if (chat == nullptr) return Ok();
  if (graph.tokenizer()->kind() == format::TokenizerKind::None) {
    return Error(TARN_BAD_FORMAT, "chat template: the model has no tokenizer for its texts");
  }
  if ((chat->system() == nullptr) != (chat->after_system() == nullptr)) {
    return Error(TARN_BAD_FORMAT, "chat template: 'system' and 'after_system' expected, or none of them");
  }
  const struct {
    const char* name;
    const format::ChatTurn* turn;
  } turns[] = {{"system", chat->system()},
               {"after_system", chat->after_system()},
               {"first", chat->first()},
               {"next", chat->next()},
               {"assistant", chat->assistant()}};
  for (const auto& one : turns) {
    if (one.turn != nullptr) TARN_RETURN_IF_ERROR(CheckText(one.name, *one.turn->before()));
  }
  TARN_RETURN_IF_ERROR(CheckText("answer", *chat->answer()));
  TARN_RETURN_IF_ERROR(CheckText("name", *chat->name()));
  if (chat->end_tokens() == nullptr) return Ok();
  for (const uint32_t id : *chat->end_tokens()) {
    if (id < graph.vocab_size() && id <= INT32_MAX) continue;
    return Error(TARN_BAD_FORMAT, "chat template: end token %u, below vocab_size %u expected", id, graph.vocab_size());
  }
  return Ok();
}

}  // namespace tarn
