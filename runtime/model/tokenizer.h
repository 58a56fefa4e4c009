// The tokenizer of a graph, as runtime/text takes it.
#ifndef TARN_RUNTIME_MODEL_TOKENIZER_H_
#define TARN_RUNTIME_MODEL_TOKENIZER_H_

#include "core/result.h"
#include "runtime/text/tokenizer_tables.h"
#include "schema/tarn_generated.h"

namespace tarn {

// Views of the arrays in `graph`, whose FlatBuffer has been verified; they are checked. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED.
Result<TokenizerTables> ReadTokenizer(const format::Model& graph);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_TOKENIZER_H_
