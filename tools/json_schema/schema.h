// Schemas as values: errors with their place, references, schemas that hold at once.
#ifndef TARN_TOOLS_JSON_SCHEMA_SCHEMA_H_
#define TARN_TOOLS_JSON_SCHEMA_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/common/failure.h"

namespace tarn::tools {

using Schema = nlohmann::ordered_json;  // properties are written in the order of the schema

// A schema with the JSON pointer that messages name it by.
struct Placed {
  Schema schema;
  std::string at;
};

constexpr int kMostDepth = 128;  // of schemas inside each other

[[noreturn]] void FailAt(const std::string& at, const std::string& message);

// The pointer of a member of what is at `at`.
std::string Under(const std::string& at, const std::string& name);

// Throws Failure where a keyword is unknown or not supported, or no list, object or string where it must be one; those that only
// describe are left out of the result.
Schema KnownKeywords(const Placed& placed);

// A pointer as "#/$defs/x" names it. Throws Failure.
const Schema& Resolve(const Schema& root, const Placed& from, const std::string& reference);

// The schema that a reference, or a reference to one, stands for; itself where there is none. Throws Failure.
Placed Target(const Schema& root, Placed placed);

// One schema for what both call valid. Throws Failure where there is no such schema among those that are supported. Properties and
// items that have a schema in both get {"allOf": [...]}.
Schema Merge(const Schema& root, const Placed& a, const Placed& b);

// The same for a schema with "allOf" and those of its list, without "allOf".
Placed MergeAll(const Schema& root, const Placed& placed);

// "null", "boolean", "object", "array", "number", "integer", "string": what a schema allows, integers as a part of numbers.
std::vector<std::string> TypesOf(const Placed& placed);

// Whether no value can be valid by both, as far as types, constants and properties with constants tell.
bool AreDisjoint(const Schema& root, const Placed& a, const Placed& b);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_JSON_SCHEMA_SCHEMA_H_
