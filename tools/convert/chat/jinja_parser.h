// Jinja templates as trees: the subset that chat templates are written in.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_PARSER_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/chat/jinja_lexer.h"

namespace tarn::convert {

struct JinjaExpression {
  enum class Kind : uint8_t {
    kText,        // text
    kInteger,     // number
    kConstant,    // text: true, false, none
    kName,        // text
    kList,        // parts
    kDict,        // parts: key, value, key, value, ...
    kAttribute,   // parts[0].text
    kItem,        // parts[0][parts[1]]
    kSlice,       // parts[0][parts[1]:parts[2]:parts[3]]; nullptr: not given
    kCall,        // parts[0](parts[1], ..., named)
    kFilter,      // parts[0] | text(parts[1], ..., named)
    kTest,        // parts[0] is text(parts[1], ...)
    kNot,         // not parts[0]
    kMinus,       // -parts[0]
    kAnd,         // parts[0] and parts[1]
    kOr,          //
    kCompare,     // parts[0] names[0] parts[1] names[1] parts[2] ...: "==", "<", "in", "not in", ...
    kArithmetic,  // parts[0] text parts[1]: "+", "-", "*", "//", "%", "~"
    kChoice,      // parts[1] if parts[0] else parts[2]; nullptr: not given
  };
  using Pointer = std::unique_ptr<JinjaExpression>;

  Kind kind;
  int line;
  std::string text;
  int64_t number = 0;
  std::vector<Pointer> parts;
  std::vector<std::string> names;  // of comparisons; of arguments with names
  std::vector<Pointer> named;      // arguments with names
};

struct JinjaStatement {
  enum class Kind : uint8_t {
    kData,      // text
    kPrint,     // expression
    kIf,        // expression, body, other
    kFor,       // names in expression, only where `condition`; body; `other` where there was none
    kSet,       // names[0] = expression, or names[0].names[1] of a namespace
    kSetBlock,  // names[0] = body
    kMacro,     // names[0](names[1], ...) with `defaults` for the last of them; body
    kScope,     // body, whose names are its own
    kBreak,
    kContinue,
  };

  Kind kind;
  int line;
  std::string text;
  std::vector<std::string> names;
  JinjaExpression::Pointer expression, condition;
  std::vector<JinjaExpression::Pointer> defaults;
  std::vector<JinjaStatement> body, other;
};

class JinjaStream;
// `with_choice` false: without "if" and "else", which a loop has for itself, and a condition does not take.
JinjaExpression::Pointer ParseJinjaExpression(JinjaStream* stream, bool with_choice);

// Errors: names the line, and what is not expected or not supported there; deeper than 64 levels.
std::vector<JinjaStatement> ParseJinja(const std::vector<JinjaToken>& tokens);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_PARSER_H_
