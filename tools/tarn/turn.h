// How what a user says becomes text of the model: the one place where that is decided.
#ifndef TARN_TOOLS_TARN_TURN_H_
#define TARN_TOOLS_TARN_TURN_H_

#include <string>

#include "tools/tarn/sources.h"

namespace tarn_cli {

// Where a turn stands in the text.
enum class TurnPlace { kBegin, kAfterLineBreak, kInLine };

// The tokens of a turn. It begins on a line of its own; the model goes on where it ends. Throws Failure.
Tokens TurnTokens(const Model& model, const std::string& text, TurnPlace place);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_TURN_H_
