// The tokens of a word, as its model finds them.
#ifndef TARN_RUNTIME_TEXT_WORD_TOKEN_H_
#define TARN_RUNTIME_TEXT_WORD_TOKEN_H_

#include <cstdint>

#include "core/span.h"

namespace tarn {

// A token of a word and how long it is.
struct WordToken {
  int32_t id;
  uint32_t length;  // with kStays: the next token begins where this one does
};
constexpr uint32_t kStays = 1u << 31;

struct WordTokens {
  Span<const WordToken> tokens;
  // A byte or a character that no id stands for was left out. Lengths then count bytes of the word as the model spells it
  // (AlphabetWidth), from its beginning and without the gap: ranges after the gap are too far left. So they are in the package.
  bool has_gap;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_TOKEN_H_
