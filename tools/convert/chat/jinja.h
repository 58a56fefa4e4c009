// Renders chat templates: the subset of Jinja that they use, with the results of jinja2 as `transformers` sets it up
// (ImmutableSandboxed- Environment, trim_blocks, lstrip_blocks). What is not supported is refused by name, so that a result is
// never a wrong one. Templates are untrusted: size, depth, steps and output are bounded.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/convert/chat/jinja_parser.h"

namespace tarn::convert {

struct JinjaMessage {
  std::string role, content;
};

// What a template is given. `tools` and `documents` are none; `strftime_now` is not there: a model file does not change from day to
// day.
struct JinjaInput {
  std::vector<JinjaMessage> messages;
  bool add_generation_prompt = false;
  std::vector<std::pair<std::string, std::string>> texts;  // bos_token and the like
};

class JinjaTemplate {
 public:
  // Errors: names the line and what is not supported.
  explicit JinjaTemplate(const std::string& source);

  // Errors: as above, or what raise_exception() of the template says.
  std::string Render(const JinjaInput& input) const;

  // The texts that stand in its expressions.
  const std::vector<std::string>& literals() const { return literals_; }
  // It names `strftime_now`.
  bool names_the_date() const { return names_the_date_; }

 private:
  std::vector<JinjaStatement> body_;
  std::vector<std::string> literals_;
  bool names_the_date_ = false;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_H_
