// The arrays of a trie (runtime/text/trie.h) of strings.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_TRIE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_TRIE_H_

#include <cstdint>
#include <map>
#include <string>

#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

// Without strings: no arrays.
TrieTables MakeTrie(const std::map<std::string, int32_t>& strings);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_TRIE_H_
