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
ChatTemplate ReadChatTemplate(const format::ChatTemplate& chat);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_CHAT_TEMPLATE_H_
