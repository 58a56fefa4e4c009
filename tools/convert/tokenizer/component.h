// What several parts of tokenizer.json have: sequences, types and ids.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_COMPONENT_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_COMPONENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/json/json.h"

namespace tarn::convert {

// The object itself, or those in the list `key` of a Sequence, with their places. Errors: a Sequence without the list.
std::vector<std::pair<const Json*, std::string>> Parts(const Json& object, const std::string& where, const char* key);

// The "type" of an object. Errors: it is none of `types`, "A, B".
std::string TypeOf(const Json& object, const std::string& where, const std::string& types);

// The id of a token; nothing: a value that is none, or one that no vocabulary has.
std::optional<uint32_t> TokenId(const Json& value);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_COMPONENT_H_
