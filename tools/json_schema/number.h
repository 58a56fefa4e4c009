// Schemas as JSON whose numbers are exact.
#ifndef TARN_TOOLS_JSON_SCHEMA_NUMBER_H_
#define TARN_TOOLS_JSON_SCHEMA_NUMBER_H_

#include <string>

#include "tools/json_schema/schema.h"

namespace tarn::tools {

// The value of a JSON text. Equal numbers become equal values, however they are spelled: an integer where it fits (1e3, 100.0), a
// double where its shortest spelling is the number, otherwise "binary" with a spelling as bytes, which nothing else makes.
// Throws Failure: not JSON, more than kMostDepth levels.
Schema ParseJson(const std::string& text);

// A number that ParseJson() made.
bool IsNumber(const Schema& value);
bool IsWhole(const Schema& value);

// The shortest spelling of a value, exact also for numbers that no double holds. Of a list or an object: what it is.
std::string Spelled(const Schema& value);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_JSON_SCHEMA_NUMBER_H_
