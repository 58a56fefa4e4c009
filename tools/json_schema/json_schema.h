// JSON Schema as a grammar: rules whose texts are the JSON that a schema calls valid. docs/grammars.md lists what is supported.
#ifndef TARN_TOOLS_JSON_SCHEMA_JSON_SCHEMA_H_
#define TARN_TOOLS_JSON_SCHEMA_JSON_SCHEMA_H_

#include <string>

namespace tarn::tools {

// The grammar of a schema, in the notation of runtime/grammar. `where` begins every message. Throws Failure: no JSON; a keyword
// that is not supported, with its JSON pointer.
std::string GrammarOfJsonSchema(const std::string& schema, const std::string& where);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_JSON_SCHEMA_JSON_SCHEMA_H_
