// Cuts long words where that changes no token: between two characters that stand next to each other in no token. Texts without
// words, such as those of Llama 2, are cut into parts that the memory holds.
#ifndef TARN_RUNTIME_TEXT_WORD_CUTTER_H_
#define TARN_RUNTIME_TEXT_WORD_CUTTER_H_

#include <cstddef>

#include "core/span.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

// The bytes of the first part of a word: all of them where it cannot be cut; 0: what follows the text decides (`is_whole`: nothing
// does). The character behind a cut has an id, so that no two unknown ones are told apart.
size_t FirstPart(const TokenizerTables& tables, Span<const char> word, bool is_whole);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_CUTTER_H_
