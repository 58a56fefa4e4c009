// Without an operating system: a chat template is not read, so that nothing of it has to be right.
#include "runtime/model/chat_template.h"

namespace tarn {

Status CheckChatTemplate(const format::Model&) { return Ok(); }

}  // namespace tarn
