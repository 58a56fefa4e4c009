// Jinja templates as tokens: with trim_blocks and lstrip_blocks, as chat templates are rendered.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_LEXER_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tarn::convert {

constexpr size_t kMaxJinjaBytes = 1u << 18;  // of a template

struct JinjaToken {
  enum class Kind : uint8_t { kData, kBlockBegin, kBlockEnd, kPrintBegin, kPrintEnd, kName, kText, kInteger, kOperator, kEnd };

  Kind kind;
  int line;
  std::string text;  // of data and texts what they stand for; of names, integers and operators how they are spelled
};

// The last one is kEnd. Errors: names the line, and what is not Jinja or not supported.
std::vector<JinjaToken> LexJinja(std::string_view source);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_LEXER_H_
