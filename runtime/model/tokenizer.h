// The tokenizer of a graph, as runtime/text takes it.
#ifndef TARN_RUNTIME_MODEL_TOKENIZER_H_
#define TARN_RUNTIME_MODEL_TOKENIZER_H_

#include "core/status.h"
#include "runtime/text/tokenizer_tables.h"
#include "schema/tarn_generated.h"

namespace tarn {

// Sets `*tables` to views of the arrays in `graph`, whose FlatBuffer has been verified; they are checked. Errors: TARN_BAD_FORMAT,
// TARN_UNSUPPORTED.
Status ReadTokenizer(const format::Model& graph, TokenizerTables* tables);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_TOKENIZER_H_
