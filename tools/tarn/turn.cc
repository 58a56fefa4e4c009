#include "tools/tarn/turn.h"

#include <tarn/chat.h>

#include "tools/common/tokenizer.h"
#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

struct ChatText {
  std::string text;
  std::vector<tarn_text_range> contents;
};

ChatText FormatTurn(const Model& model, const std::optional<std::string>& system, const std::string& text, TurnPlace place) {
  const bool begins = place == TurnPlace::kBegin;
  std::vector<tarn_chat_message> messages;
  if (begins && system) messages.push_back({TARN_CHAT_SYSTEM, system->data(), system->size()});
  messages.push_back({TARN_CHAT_USER, text.data(), text.size()});
  ChatText formatted = {"", std::vector<tarn_text_range>(messages.size())};
  size_t bytes = 0;
  tarn_error error;
  const auto format = [&] {
    tarn_chat chat = {begins ? 0u : 2u};
    return tarn_chat_format(model.get(), &chat, messages.data(), messages.size(), formatted.text.data(), formatted.text.size(),
                            &bytes, formatted.contents.data(), &error);
  };
  const tarn_status measured = format();
  if (measured != TARN_BUFFER_TOO_SMALL) Check(measured, error);
  formatted.text.resize(bytes);
  Check(format(), error);
  return formatted;
}

}  // namespace

Tokens TurnTokens(const Model& model, const TurnOptions& options, const std::string& text, TurnPlace place) {
  tarn::tools::Tokenizer tokenizer(model.get(), options.plain && !options.chat);
  if (options.chat) {
    const ChatText formatted = FormatTurn(model, options.system, text, place);
    return tokenizer.Encode(formatted.text, /*with_template=*/false, formatted.contents).tokens;
  }
  const std::string formatted = (place == TurnPlace::kInLine ? "\n" : "") + text;
  // Tokens that begin a text stand at its begin alone.
  return tokenizer.Encode(formatted, /*with_template=*/place == TurnPlace::kBegin).tokens;
}

std::vector<int32_t> EndTokens(const Model& model, const TurnOptions& options) {
  std::vector<int32_t> ends;
  if (model.info().eos_token >= 0) ends.push_back(model.info().eos_token);
  if (!options.chat) return ends;
  tarn_chat_info chat = TARN_CHAT_INFO_INIT;
  tarn_error error;
  const tarn_status status = tarn_chat_get_info(model.get(), &chat, &error);
  if (status == TARN_NOT_FOUND) {
    throw Failure(model.path() +
                  ": the model has no chat template, expected one for --chat: tarn-convert --chat-template NAME gives it one");
  }
  Check(status, error);
  if (options.system && chat.takes_system == 0) {
    throw Failure(model.path() + ": the chat template \"" + chat.name +
                  "\" takes no system text: leave out --system, or say it in the first turn");
  }
  ends.insert(ends.end(), chat.end_tokens, chat.end_tokens + chat.end_token_count);
  return ends;
}

}  // namespace tarn_cli
