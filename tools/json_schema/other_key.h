// Names of properties that a schema does not name.
#ifndef TARN_TOOLS_JSON_SCHEMA_OTHER_KEY_H_
#define TARN_TOOLS_JSON_SCHEMA_OTHER_KEY_H_

#include <string>

#include "tools/json_schema/rules.h"
#include "tools/json_schema/schema.h"

namespace tarn::tools {

// A part of a rule: a key, in quotes, that is none of `properties`. `at` is their schema.
std::string OtherKey(const Schema& properties, const std::string& at, Rules* rules);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_JSON_SCHEMA_OTHER_KEY_H_
