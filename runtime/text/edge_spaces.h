// Ranges of tokens without the spaces at their ends, as the package's ByteLevel trims them: it counts the spaces of the token and
// takes as many characters away from the range, whatever they are.
#ifndef TARN_RUNTIME_TEXT_EDGE_SPACES_H_
#define TARN_RUNTIME_TEXT_EDGE_SPACES_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/pattern.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

struct EdgeSpaces {
  size_t leading, trailing;
};

// Of a token with this text. The letter that stands for a space in the byte-level alphabet is one, too.
EdgeSpaces EdgeSpacesOfText(Span<const char> text);
EdgeSpaces EdgeSpacesOfToken(const TokenizerTables& tables, uint32_t id);

// `range` is a part of `text`.
TextRange TrimRange(Span<const char> text, TextRange range, const EdgeSpaces& spaces);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_EDGE_SPACES_H_
