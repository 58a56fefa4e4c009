// From a Jinja template to the restricted form: the template is rendered on conversations that are made for it, the texts between
// their contents are the form, and further conversations show whether that is all there is.
#ifndef TARN_TOOLS_CONVERT_CHAT_CHAT_FIT_H_
#define TARN_TOOLS_CONVERT_CHAT_CHAT_FIT_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/convert/chat/chat_data.h"
#include "tools/convert/chat/jinja.h"

namespace tarn::convert {

struct ChatFit {
  ChatData chat;  // without name and end tokens
  // Why there is no system text; empty: there is.
  std::string no_system;
  // Texts of the template with which it renders a content otherwise: "</think>", before which it drops everything.
  std::vector<std::string> special_contents;
  // How it renders a content without text otherwise; empty: it does not.
  std::string blank_content;
};

// `texts`: bos_token and the like. Errors: one line that says which conversation is rendered otherwise than the form can.
ChatFit FitChat(const JinjaTemplate& jinja, const std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_CHAT_FIT_H_
