// How what a user says becomes text of the model: the one place where that is decided.
#ifndef TARN_TOOLS_TARN_TURN_H_
#define TARN_TOOLS_TARN_TURN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tarn/model.h"
#include "tools/tarn/sources.h"

namespace tarn_cli {

struct TurnOptions {
  bool chat = false;                  // with the text of the model's chat template around it
  std::optional<std::string> system;  // then: what the model is told before the first turn; none: what the template says
  bool plain = false;                 // special tokens in a turn are text like any other, as they always are with a chat template
};

// Where a turn stands in the text.
enum class TurnPlace { kBegin, kAfterLineBreak, kInLine };

// The tokens of a turn. It begins on a line of its own, or as the chat template has it, whose special tokens are none in `text`;
// the model goes on where it ends. Throws Failure.
Tokens TurnTokens(const Model& model, const TurnOptions& options, const std::string& text, TurnPlace place);

// What ends an answer. Throws Failure: there is no chat template, or it has no place for a system text.
std::vector<int32_t> EndTokens(const Model& model, const TurnOptions& options);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_TURN_H_
