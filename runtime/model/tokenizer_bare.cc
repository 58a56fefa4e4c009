// Without an operating system: bytes and ids. The other tokenizers would add 20 KB of code to every program.
#include "runtime/model/tokenizer.h"

namespace tarn {

Status ReadTokenizer(const format::Model& graph, TokenizerTables* tables) {
  tables->kind = static_cast<TokenizerKind>(graph.tokenizer()->kind());
  tables->vocab_size = graph.vocab_size();
  if (!HasTables(tables->kind)) return Ok();
  return Error(TARN_UNSUPPORTED,
               "this build has no tokenizer but that of bytes, and the model has another: convert it with \"tokenizer\": "
               "\"none\", and pass token ids");
}

}  // namespace tarn
