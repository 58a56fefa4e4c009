// Vocabularies of strings that are found in a text without words: the longest one, again and again.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_LONGEST_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_LONGEST_H_

#include <string>

#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

// rwkv_vocab.txt, whose lines are an id, a string or bytes as Python writes them, and how many bytes it has. Id 0 ends a text.
Vocabulary ReadRwkv(const std::string& path);
// characters.json, a list of characters in the order of their ids. "<unk>" among them is the token of all others.
Vocabulary ReadCharacters(const std::string& path);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_LONGEST_H_
