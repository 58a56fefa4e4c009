// Chat templates by name, for checkpoints whose own is absent or refused.
#ifndef TARN_TOOLS_CONVERT_CHAT_KNOWN_TEMPLATES_H_
#define TARN_TOOLS_CONVERT_CHAT_KNOWN_TEMPLATES_H_

#include <string>
#include <vector>

#include "tools/convert/chat/chat_data.h"

namespace tarn::convert {

std::vector<std::string> KnownTemplateNames();
// One of those names.
ChatData KnownTemplate(const std::string& name);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_KNOWN_TEMPLATES_H_
