// The chat template of a checkpoint, or the one that the user names, as a model file holds it.
#ifndef TARN_TOOLS_CONVERT_CHAT_CHAT_TEMPLATE_H_
#define TARN_TOOLS_CONVERT_CHAT_CHAT_TEMPLATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/tarn_generated.h"
#include "tools/convert/chat/chat_data.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

struct ChatRequest {
  std::string folder;                        // of tokenizer_config.json
  std::string name;                          // one of KnownTemplateNames(); empty: the checkpoint's own
  const TokenizerData* tokenizer = nullptr;  // nullptr: bytes
  uint32_t vocab_size = 0;
  int32_t eos_token = -1;
};

// Nothing: the checkpoint has none, or it is refused. `notes` gets lines about what is refused, and what to know of the result.
// Errors: files that are no JSON.
std::optional<ChatData> ReadChatTemplate(const ChatRequest& request, std::vector<std::string>* notes);

flatbuffers::Offset<format::ChatTemplate> WriteChatTemplate(const ChatData& chat, flatbuffers::FlatBufferBuilder* builder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_CHAT_TEMPLATE_H_
