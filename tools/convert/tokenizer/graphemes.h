// Grapheme clusters: what readers see as one character.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_GRAPHEMES_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_GRAPHEMES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::convert {

// A pattern whose match is an extended grapheme cluster of 17.0 (UAX 29). The beginning of a cluster is one, too: the automaton of
// the pattern dies at the first character that does not belong to it.
std::string GraphemePattern();

// For each code point, whether it may belong to a cluster of its neighbour: false only where nothing but marks join it.
std::vector<bool> JoinsNeighbours();

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_GRAPHEMES_H_
