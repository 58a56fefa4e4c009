// Decompositions and compositions of Unicode 9.0, made ready for tables.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_NORMAL_FORMS_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_NORMAL_FORMS_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace tarn::convert {

using CodeMapping = std::map<uint32_t, std::vector<uint32_t>>;

// To the end: nothing in a decomposition decomposes. Hangul syllables are not in it.
CodeMapping CanonicalDecompositions();
// Those that differ from the canonical ones.
CodeMapping CompatibilityDecompositions();
// The first, the second, what they compose to; ascending. Hangul is not in it.
std::vector<std::array<uint32_t, 3>> Compositions();
// Canonical_Combining_Class of each code point.
std::vector<uint8_t> CombiningClasses();
// Lowercase of 17.0, of one or two characters.
CodeMapping LowercaseMappings();

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_NORMAL_FORMS_H_
