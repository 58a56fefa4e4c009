// Lines of JSON that are read.
#ifndef TARN_TOOLS_TARN_JSON_LINES_H_
#define TARN_TOOLS_TARN_JSON_LINES_H_

#include <string>
#include <vector>

#include "tools/tarn/sources.h"

namespace tarn_cli {

// {"text": "..."}: the text. Throws Failure, which names the line.
std::string TextOfLine(const Line& line);
// {"ids": [...]}: the ids. Throws Failure, which names the line.
Tokens IdsOfLine(const Line& line);

struct Question {
  std::string context;
  std::vector<std::string> choices;  // two or more, none empty
  size_t answer;                     // of the choices
};
// {"context": "...", "choices": ["...", ...], "answer": 0}. Throws Failure, which names the line.
Question QuestionOfLine(const Line& line);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_JSON_LINES_H_
