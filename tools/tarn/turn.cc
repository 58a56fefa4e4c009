#include "tools/tarn/turn.h"

#include "tools/common/tokenizer.h"

namespace tarn_cli {

Tokens TurnTokens(const Model& model, const std::string& text, TurnPlace place) {
  const std::string formatted = (place == TurnPlace::kInLine ? "\n" : "") + text;
  // Tokens that begin a text stand at its begin alone.
  return tarn::tools::Tokenizer(model.get()).Encode(formatted, /*with_template=*/place == TurnPlace::kBegin).tokens;
}

}  // namespace tarn_cli
