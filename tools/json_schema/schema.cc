#include "tools/json_schema/schema.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tools/json_schema/number.h"

namespace tarn::tools {
namespace {

constexpr const char* kDescriptions[] = {"$schema",  "$id",        "$comment", "title",     "description", "default",
                                         "examples", "deprecated", "readOnly", "writeOnly", "$defs",       "definitions"};

struct Keyword {
  const char* name;
  Schema::value_t type;
  const char* expected;  // nullptr: it is looked at where it is used
};
constexpr auto kAnyType = Schema::value_t::null, kObject = Schema::value_t::object, kList = Schema::value_t::array,
               kText = Schema::value_t::string;
constexpr Keyword kKeywords[] = {
    {"$ref", kText, "a string"},
    {"allOf", kList, "a list of schemas"},
    {"anyOf", kList, "a list of schemas"},
    {"oneOf", kList, "a list of schemas"},
    {"enum", kList, "a list of values"},
    {"const", kAnyType, nullptr},
    {"type", kAnyType, nullptr},
    {"nullable", kAnyType, nullptr},
    {"properties", kObject, "an object"},
    {"required", kList, "a list of names"},
    {"additionalProperties", kAnyType, nullptr},
    {"items", kAnyType, nullptr},
    {"prefixItems", kList, "a list of schemas"},
    {"minItems", kAnyType, nullptr},
    {"maxItems", kAnyType, nullptr},
    {"minLength", kAnyType, nullptr},
    {"maxLength", kAnyType, nullptr},
    {"pattern", kText, "a string"},
    {"format", kText, "a string"},
    {"minimum", kAnyType, nullptr},
    {"maximum", kAnyType, nullptr},
    {"exclusiveMinimum", kAnyType, nullptr},
    {"exclusiveMaximum", kAnyType, nullptr},
};

bool IsOneOf(const std::string& name, const char* const* begin, const char* const* end) {
  return std::any_of(begin, end, [&](const char* other) { return name == other; });
}

// Of a pointer: "~1" is '/', "~0" is '~'.
std::string Unescaped(std::string part) {
  for (const auto& [from, to] : {std::pair<const char*, const char*>{"~1", "/"}, {"~0", "~"}}) {
    for (size_t at = part.find(from); at != std::string::npos; at = part.find(from, at + 1)) part.replace(at, 2, to);
  }
  return part;
}

// Of a part of a URI: "%20" is a space. What is no such escape stays as it is.
std::string PercentDecoded(const std::string& text) {
  const auto digit = [&](size_t i) { return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0; };
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && digit(i + 1) && digit(i + 2);
    decoded += is_escape ? static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)) : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

// The member or the item that a part of a pointer names, or nullptr. Items have numbers without leading zeros.
const Schema* Child(const Schema& parent, const std::string& part) {
  if (parent.is_object()) return parent.contains(part) ? &parent[part] : nullptr;
  const bool is_number = !part.empty() && part.size() <= 9 && part.find_first_not_of("0123456789") == std::string::npos;
  if (!parent.is_array() || !is_number || (part[0] == '0' && part.size() > 1)) return nullptr;
  const size_t i = std::stoul(part);
  return i < parent.size() ? &parent[i] : nullptr;
}

// What holds where both do. Merged only where a value is looked at: schemas that refer to themselves have no end.
Schema Both(const Schema& a, const Schema& b) {
  if (a == b || b == Schema(true)) return a;
  if (a == Schema(true)) return b;
  if (a == Schema(false) || b == Schema(false)) return false;
  Schema parts = Schema::array();
  for (const Schema& one : {a, b}) {
    const bool is_list = one.is_object() && one.size() == 1 && one.contains("allOf") && one["allOf"].is_array();
    for (const Schema& part : is_list ? one["allOf"] : Schema::array({one})) {
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
  }
  if (parts.size() == 1) return parts[0];
  Schema both = Schema::object();
  both["allOf"] = parts;
  return both;
}

Schema MergeProperties(const Schema& a, const Schema& b) {
  Schema all = a;
  for (const auto& [name, schema] : b.items()) all[name] = all.contains(name) ? Both(all[name], schema) : schema;
  return all;
}

// "items" of a schema is for the items behind its own "prefixItems".
void MergeItems(const Placed& a, const Placed& b, Schema* all) {
  const auto has_items = [](const Placed& placed) {
    return placed.schema.contains("prefixItems") || placed.schema.contains("items");
  };
  if (!has_items(a) || !has_items(b)) return;
  const Schema none = Schema::array(), first_a = a.schema.value("prefixItems", none), first_b = b.schema.value("prefixItems", none);
  const Schema items_a = a.schema.value("items", Schema(true)), items_b = b.schema.value("items", Schema(true));
  Schema merged = Schema::array();
  for (size_t i = 0; i < std::max(first_a.size(), first_b.size()); ++i) {
    merged.push_back(Both(i < first_a.size() ? first_a[i] : items_a, i < first_b.size() ? first_b[i] : items_b));
  }
  if (!merged.empty()) (*all)["prefixItems"] = merged;
  (*all)["items"] = Both(items_a, items_b);
}

Schema Intersection(const Schema& a, const Schema& b) {
  Schema both = Schema::array();
  for (const Schema& value : a) {
    if (std::find(b.begin(), b.end(), value) != b.end()) both.push_back(value);
  }
  return both;
}

Schema MergeTypes(const Placed& a, const Placed& b) {
  Schema both = Schema::array();
  const std::vector<std::string> types_a = TypesOf(a), types_b = TypesOf(b);
  const auto has = [](const std::vector<std::string>& types, const char* type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  for (const std::string& type : types_a) {
    if (has(types_b, type.c_str()) || (type == "integer" && has(types_b, "number"))) both.push_back(type);
    if (type == "number" && !has(types_b, "number") && has(types_b, "integer")) both.push_back("integer");
  }
  if (both.empty()) FailAt(b.at, "no type is allowed by both schemas");
  return both;
}

// A closed object takes no property that only the other schema has: "additionalProperties" of the one says so.
void CheckAdditional(const Placed& closed, const Placed& other) {
  if (!closed.schema.contains("additionalProperties") || closed.schema["additionalProperties"] == Schema(true)) return;
  const Schema own = closed.schema.value("properties", Schema::object()), more = other.schema.value("properties", Schema::object());
  for (const auto& [name, schema] : more.items()) {
    if (!own.contains(name)) {
      FailAt(closed.at + "/additionalProperties",
             "not supported where another schema that holds as well has property '" + name + "'");
    }
  }
}

Schema MergeKeyword(const std::string& key, const Placed& a, const Placed& b) {
  const Placed value_a{a.schema[key], a.at + "/" + key}, value_b{b.schema[key], b.at + "/" + key};
  const Schema &x = value_a.schema, &y = value_b.schema;
  if (x == y) return x;
  if (key == "properties") return MergeProperties(x, y);
  if (key == "enum") return Intersection(x, y);
  if (key == "required") {
    Schema all = x;
    for (const Schema& name : y) {
      if (std::find(x.begin(), x.end(), name) == x.end()) all.push_back(name);
    }
    return all;
  }
  const bool least = key == "minimum" || key == "minLength" || key == "minItems" || key == "exclusiveMinimum";
  const bool most = key == "maximum" || key == "maxLength" || key == "maxItems" || key == "exclusiveMaximum";
  if (least && x.is_number() && y.is_number()) return std::max(x, y);
  if (most && x.is_number() && y.is_number()) return std::min(x, y);
  FailAt(value_b.at, "not supported beside another '" + key + "' that holds as well (" + value_a.at + ")");
}

}  // namespace

void FailAt(const std::string& at, const std::string& message) { throw Failure((at.empty() ? "#" : at) + ": " + message); }

std::string Under(const std::string& at, const std::string& name) {
  std::string pointer = at + "/";
  for (const char c : name) {
    if (c == '~' || c == '/') {
      pointer += c == '~' ? "~0" : "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

namespace {

[[noreturn]] void FailAtId(const std::string& at) {
  FailAt(at + "/$id", "not supported but at the root: it would change what '$ref' starts from");
}

}  // namespace

Schema KnownKeywords(const Placed& placed) {
  if (!placed.schema.is_object())
    FailAt(placed.at, "is " + Spelled(placed.schema) + ", expected a schema: an object, true or false");
  Schema known = Schema::object();
  for (const auto& member : placed.schema.items()) {
    const std::string& key = member.key();
    const Schema& value = member.value();
    if (key == "$id" && placed.at != "#") FailAtId(placed.at);
    if (IsOneOf(key, std::begin(kDescriptions), std::end(kDescriptions))) continue;
    if (key == "uniqueItems" && value == Schema(false)) continue;
    const auto keyword =
        std::find_if(std::begin(kKeywords), std::end(kKeywords), [&](const Keyword& one) { return one.name == key; });
    if (keyword == std::end(kKeywords)) FailAt(Under(placed.at, key), "this keyword is not supported");
    if (keyword->expected != nullptr && value.type() != keyword->type) {
      FailAt(Under(placed.at, key), "is " + Spelled(value) + ", expected " + keyword->expected);
    }
    known[key] = value;
  }
  return known;
}

const Schema& Resolve(const Schema& root, const Placed& from, const std::string& reference) {
  const Schema* at = &root;
  if (reference.empty() || reference[0] != '#') {
    FailAt(from.at + "/$ref", "'" + reference + "' is not in this file, expected '#' and a JSON pointer");
  }
  const std::string pointer = PercentDecoded(reference.substr(1));
  for (size_t begin = 0; begin < pointer.size();) {
    const size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    at = pointer[begin] == '/' ? Child(*at, Unescaped(pointer.substr(begin + 1, end - begin - 1))) : nullptr;
    if (at == nullptr) FailAt(from.at + "/$ref", "'" + reference + "' leads nowhere");
    begin = end;
    if (at != &root && at->is_object() && at->contains("$id") && (*at)["$id"].is_string()) {
      FailAtId("#" + pointer.substr(0, end));
    }
  }
  return *at;
}

Placed Target(const Schema& root, Placed placed) {
  std::set<std::string> seen;
  while (placed.schema.is_object() && placed.schema.contains("$ref")) {
    const Schema known = KnownKeywords(placed);
    const std::string reference = known["$ref"].get<std::string>();
    if (!seen.insert(reference).second) FailAt(placed.at, "'$ref' leads back to itself");
    if (known.size() > 1) FailAt(placed.at + "/$ref", "not supported beside other keywords here");
    placed = {Resolve(root, placed, reference), reference};
  }
  return placed;
}

Schema Merge(const Schema& root, const Placed& first, const Placed& second) {
  if (first.schema == Schema(true)) return second.schema;
  if (second.schema == Schema(true)) return first.schema;
  const Placed a = Target(root, first), b = Target(root, second);
  if (a.schema == b.schema) return a.schema;
  for (const Placed* one : {&a, &b}) {
    if (one->schema == Schema(false)) FailAt(one->at, "false allows no value");
  }
  const Schema known_a = KnownKeywords(a), known_b = KnownKeywords(b);
  const Placed placed_a{known_a, a.at}, placed_b{known_b, b.at};
  CheckAdditional(placed_a, placed_b);
  CheckAdditional(placed_b, placed_a);
  Schema all = known_a;
  for (const auto& [key, value] : known_b.items()) {
    if (key == "type" || key == "nullable" || key == "items" || key == "prefixItems") continue;
    all[key] = all.contains(key) ? MergeKeyword(key, placed_a, placed_b) : value;
  }
  for (const char* key : {"items", "prefixItems"}) {
    if (!all.contains(key) && known_b.contains(key)) all[key] = known_b[key];
  }
  MergeItems(placed_a, placed_b, &all);
  if (known_a.contains("type") || known_b.contains("type")) all["type"] = MergeTypes(placed_a, placed_b);
  all.erase("nullable");
  return all;
}

Placed MergeAll(const Schema& root, const Placed& placed) {
  Schema all = true;
  std::vector<Placed> parts = {placed};
  std::set<std::string> seen;  // a schema that holds twice holds
  while (!parts.empty()) {
    const Placed part = Target(root, parts.back());
    parts.pop_back();
    if (!seen.insert(part.schema.dump()).second || part.schema == Schema(true)) continue;
    if (part.schema == Schema(false)) FailAt(part.at, "false allows no value");
    Schema own = KnownKeywords(part);
    const Schema list = own.value("allOf", Schema::array());
    own.erase("allOf");
    for (size_t i = list.size(); i-- > 0;) parts.push_back({list[i], part.at + "/allOf/" + std::to_string(i)});
    if (!own.empty()) all = Merge(root, {all, placed.at}, {own, part.at});
  }
  return {all, placed.at};
}

std::vector<std::string> TypesOf(const Placed& placed) {
  const std::vector<std::string> all = {"null", "boolean", "object", "array", "number", "string"};
  if (!placed.schema.contains("type")) return all;
  const Schema& type = placed.schema["type"];
  std::vector<std::string> types;
  for (const Schema& name : type.is_array() ? type : Schema::array({type})) {
    const std::string text = name.is_string() ? name.get<std::string>() : Spelled(name);
    if (text != "integer" && std::find(all.begin(), all.end(), text) == all.end()) {
      FailAt(placed.at + "/type", "'" + text + "' is no type");
    }
    types.push_back(text);
  }
  if (placed.schema.contains("nullable") && placed.schema["nullable"] == Schema(true)) types.push_back("null");
  if (std::find(types.begin(), types.end(), "number") != types.end()) {
    types.erase(std::remove(types.begin(), types.end(), "integer"), types.end());
  }
  std::vector<std::string> once;
  for (const std::string& name : types) {
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  }
  if (once.empty()) FailAt(placed.at + "/type", "no type is left");
  return once;
}

namespace {

constexpr size_t kMostPairs = 4096;  // of schemas that are compared

// Pairs that were `seen` before tell nothing more: schemas may refer to themselves.
bool AreDisjointBut(const Schema& root, const Placed& first, const Placed& second,
                    std::set<std::pair<std::string, std::string>>* seen) {
  const Placed a = Target(root, first), b = Target(root, second);
  if (!seen->emplace(a.at, b.at).second || seen->size() > kMostPairs) return false;
  if (!a.schema.is_object() || !b.schema.is_object()) return false;
  const auto values = [](const Schema& schema) {
    return schema.contains("const") ? Schema::array({schema["const"]}) : schema.value("enum", Schema());
  };
  const Schema values_a = values(a.schema), values_b = values(b.schema);
  if (values_a.is_array() && values_b.is_array() && Intersection(values_a, values_b).empty()) return true;
  bool types = true;
  const auto base = [](const std::string& type) { return type == "integer" ? std::string("number") : type; };
  for (const std::string& x : TypesOf(a)) {
    for (const std::string& y : TypesOf(b)) types = types && base(x) != base(y);
  }
  if (types) return true;
  const auto only_objects = [](const Placed& placed) { return TypesOf(placed) == std::vector<std::string>{"object"}; };
  if (!only_objects(a) || !only_objects(b)) return false;
  const auto requires_name = [](const Placed& placed, const std::string& name) {
    const Schema required = placed.schema.value("required", Schema::array());
    return std::find(required.begin(), required.end(), Schema(name)) != required.end();
  };
  const Schema own = a.schema.value("properties", Schema::object()), other = b.schema.value("properties", Schema::object());
  for (const auto& [name, schema] : own.items()) {
    if (!other.contains(name) || !requires_name(a, name) || !requires_name(b, name)) continue;
    if (AreDisjointBut(root, {schema, Under(a.at + "/properties", name)}, {other[name], Under(b.at + "/properties", name)}, seen)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool AreDisjoint(const Schema& root, const Placed& first, const Placed& second) {
  std::set<std::pair<std::string, std::string>> seen;
  return AreDisjointBut(root, first, second, &seen);
}

}  // namespace tarn::tools
