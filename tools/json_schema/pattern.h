// The patterns of strings, a part of ECMA-262's regular expressions, as rules.
#ifndef TARN_TOOLS_JSON_SCHEMA_PATTERN_H_
#define TARN_TOOLS_JSON_SCHEMA_PATTERN_H_

#include <string>

namespace tarn::tools {

// What stands between the quotes of a string of JSON that the pattern finds something in, in the shortest spelling; without ^ or $
// other characters (the rule "key-char") stand before or behind. `at` begins the message of a Failure.
std::string PatternRule(const std::string& pattern, const std::string& at);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_JSON_SCHEMA_PATTERN_H_
