#include "tools/json_schema/json_schema.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "tools/json_schema/number.h"
#include "tools/json_schema/other_key.h"
#include "tools/json_schema/pattern.h"
#include "tools/json_schema/rules.h"
#include "tools/json_schema/schema.h"

namespace tarn::tools {
namespace {

// Keywords that say something about values of one type.
constexpr const char* kOfNumbers[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};

constexpr uint64_t kMostRules = 8192;        // of a grammar
constexpr uint64_t kMostCounted = 1u << 20;  // of a repetition {m,n}

// Every function that gets a Placed schema returns a part of a rule that may stand in a sequence.
class Compiler {
 public:
  explicit Compiler(const Schema& root) : root_(root) {}

  // Rules with names are made one after another: a schema may refer to itself, and a chain of references may be long.
  std::string Compile() {
    const std::string value = AnyOf({root_, "#"});
    for (size_t i = 0; i < named_.size(); ++i) {
      Named& rule = named_[i];
      rule.alternatives = AlternativesOf(rule.placed);
      rule.placed.schema = nullptr;
      std::string all;
      for (const std::string& alternative : rule.alternatives) all += (all.empty() ? "" : " | ") + alternative;
      rules_.Define(rule.name, all);
    }
    CheckLoops();
    return rules_.Text(rules_.Common("ws") + " " + value + " ws");
  }

 private:
  // A rule that takes what one of others takes, and its schema.
  struct Named {
    std::string name;
    Placed placed;
    std::vector<std::string> alternatives;
  };

  // A schema of any kind. Returns the name of a rule.
  std::string AnyOf(const Placed& placed) {
    if (rules_.count() > kMostRules) {
      FailAt(placed.at, "up to here the schema makes more than the " + std::to_string(kMostRules) +
                            " rules that a grammar may have: make it smaller");
    }
    if (placed.schema == Schema(true)) return rules_.Common("value");
    if (placed.schema == Schema(false)) FailAt(placed.at, "false allows no value");
    const Schema known = KnownKeywords(placed);
    if (known.empty()) return rules_.Common("value");
    for (const char* key : {"allOf", "anyOf", "oneOf"}) {
      if (known.contains(key) && known[key].empty()) {
        FailAt(placed.at + "/" + key, "is empty, expected a list of schemas");
      }
    }
    if (depth_ == kMostDepth) FailAt(placed.at, "more than " + std::to_string(kMostDepth) + " schemas inside each other");
    ++depth_;
    const std::string name = Simple({known, placed.at});
    --depth_;
    return name;
  }

  std::string Simple(const Placed& placed) {
    if (placed.schema.contains("$ref")) return Reference(placed);
    if (placed.schema.contains("allOf") && placed.schema.size() == 1 && placed.schema["allOf"].size() == 1) {
      return AnyOf({placed.schema["allOf"][0], placed.at + "/allOf/0"});
    }
    for (const char* key : {"allOf", "anyOf", "oneOf"}) {
      if (placed.schema.contains(key)) return NameOf(placed.schema.dump(), placed);
    }
    if (placed.schema.contains("const") || placed.schema.contains("enum")) return Constants(placed);
    std::string all;
    for (const std::string& type : TypesOf(placed)) all += (all.empty() ? "" : " | ") + OfType(placed, type);
    return rules_.Add(all);
  }

  std::string Reference(const Placed& placed) {
    if (placed.schema.size() > 1) FailAt(placed.at + "/$ref", "not supported beside other keywords");
    return NameOf(placed.schema["$ref"].get<std::string>(), placed);
  }

  // One rule for each `key`: schemas that are made of equal ones are made once.
  std::string NameOf(const std::string& key, const Placed& placed) {
    const auto [known, is_new] = names_.emplace(key, "");
    if (is_new) {
      known->second = rules_.Reserve();
      named_.push_back({known->second, placed, {}});
    }
    return known->second;
  }

  // Names of rules, of which one takes a value that is valid by `placed`: a reference, or a schema that is made of others.
  std::vector<std::string> AlternativesOf(const Placed& placed) {
    if (placed.schema.contains("$ref")) return {AnyOf(Target(root_, placed))};
    if (placed.schema.contains("allOf")) return {AnyOf(MergeAll(root_, placed))};
    return EachOf(placed, placed.schema.contains("anyOf") ? "anyOf" : "oneOf");
  }

  // What stands beside the list holds with each of its schemas.
  std::vector<std::string> EachOf(const Placed& placed, const std::string& key) {
    Schema beside = placed.schema;
    beside.erase(key);
    std::vector<Placed> parts;
    for (const Schema& part : placed.schema[key])
      parts.push_back({part, placed.at + "/" + key + "/" + std::to_string(parts.size())});
    for (size_t i = 0; key == "oneOf" && i < parts.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (AreDisjoint(root_, parts[j], parts[i])) continue;
        FailAt(parts[i].at, "a value could be valid by alternative " + std::to_string(j) +
                                " as well, and oneOf then refuses it: expected anyOf, or a type or a constant that differs");
      }
    }
    std::vector<std::string> all;
    for (const Placed& part : parts) {
      all.push_back(AnyOf(beside.empty() ? part : Placed{Merge(root_, {beside, placed.at}, part), part.at}));
    }
    return all;
  }

  // A rule is sound where its alternatives are; those that never become sound lead back to themselves.
  void CheckLoops() const {
    std::map<std::string, size_t> open;  // alternatives that are not known to be sound
    std::map<std::string, std::vector<std::string>> users;
    std::vector<std::string> sound;
    for (const Named& rule : named_) open[rule.name] = 0;
    for (const Named& rule : named_) {
      for (const std::string& alternative : rule.alternatives) {
        if (open.count(alternative) == 0) continue;
        ++open[rule.name];
        users[alternative].push_back(rule.name);
      }
      if (open[rule.name] == 0) sound.push_back(rule.name);
    }
    while (!sound.empty()) {
      const std::string name = sound.back();
      sound.pop_back();
      for (const std::string& user : users[name]) {
        if (--open[user] == 0) sound.push_back(user);
      }
    }
    for (const Named& rule : named_) {
      if (open[rule.name] == 0) continue;
      FailAt(rule.placed.at,
             "a value is valid here where it is valid here: a property or an item is missing between a '$ref' and its aim");
    }
  }

  std::string Constants(const Placed& placed) {
    Schema values = Schema::array();
    if (placed.schema.contains("const")) values.push_back(placed.schema["const"]);
    if (placed.schema.contains("enum")) {
      const Schema& list = placed.schema["enum"];
      const bool both = !values.empty();
      if (both && std::find(list.begin(), list.end(), values[0]) == list.end()) values.clear();
      if (!both) values = list;
    }
    for (const auto& [key, value] : placed.schema.items()) {
      if (key == "const" || key == "enum" || key == "type" || key == "nullable") continue;
      FailAt(placed.at + "/" + key, "not supported beside const or enum");
    }
    const std::vector<std::string> types = TypesOf(placed);
    std::string all;
    for (const Schema& value : values) {
      if (IsOfType(value, types)) all += (all.empty() ? "" : " | ") + Literal(value);
    }
    if (all.empty()) FailAt(placed.at, "no value is left");
    return rules_.Add(all);
  }

  static bool IsOfType(const Schema& value, const std::vector<std::string>& types) {
    const auto has = [&](const char* type) { return std::find(types.begin(), types.end(), type) != types.end(); };
    if (IsNumber(value)) return has("number") || (IsWhole(value) && has("integer"));
    return has(value.is_null()      ? "null"
               : value.is_boolean() ? "boolean"
               : value.is_string()  ? "string"
               : value.is_array()   ? "array"
                                    : "object");
  }

  // A value as it stands in the schema.
  std::string Literal(const Schema& value) {
    if (!value.is_structured()) return Quoted(Spelled(value));
    const std::string ws = rules_.Common("ws");
    std::string all;
    for (const auto& [key, part] : value.items()) {
      all += all.empty() ? "" : " \",\" " + ws + " ";
      if (value.is_object()) all += Quoted(Schema(key).dump() + ":") + " " + ws + " ";
      all += Literal(part) + " " + ws;
    }
    return value.is_object() ? "\"{\" " + ws + " " + all + " \"}\"" : "\"[\" " + ws + " " + all + " \"]\"";
  }

  std::string OfType(const Placed& placed, const std::string& type) {
    if (type == "object") return Object(placed);
    if (type == "array") return List(placed);
    if (type == "string") return String(placed);
    if (type == "integer" || type == "number") return Number(placed, type);
    return rules_.Common(type);
  }

  // A number of items or characters.
  static uint64_t Count(const Placed& placed, const char* key, uint64_t fallback) {
    if (!placed.schema.contains(key)) return fallback;
    const Schema& value = placed.schema[key];
    if (!value.is_number_unsigned()) {
      FailAt(placed.at + "/" + key, "is " + Spelled(value) + ", expected a whole number from 0 to 2^63 - 1");
    }
    return value.get<uint64_t>();
  }

  static void CheckCount(const Placed& placed, const char* key, uint64_t count) {
    if (count <= kMostCounted || count == kUnlimited) return;
    FailAt(placed.at + "/" + key, "is " + Spelled(placed.schema[key]) + ", expected at most " + std::to_string(kMostCounted) +
                                      ", as often as a grammar repeats something");
  }

  static std::string Counts(uint64_t least, uint64_t most) {
    return "{" + std::to_string(least) + "," + (most == kUnlimited ? "" : std::to_string(most)) + "}";
  }

  std::string String(const Placed& placed) {
    const uint64_t least = Count(placed, "minLength", 0), most = Count(placed, "maxLength", kUnlimited);
    const bool bounded = least > 0 || most != kUnlimited;
    const bool has_pattern = placed.schema.contains("pattern"), has_format = placed.schema.contains("format");
    if (has_pattern + has_format + bounded > 1) {
      FailAt(placed.at + (has_pattern ? "/pattern" : "/format"),
             "not supported beside another of minLength, maxLength, pattern, format");
    }
    if (least > most) FailAt(placed.at + "/maxLength", "below minLength");
    CheckCount(placed, "minLength", least);
    CheckCount(placed, "maxLength", most);
    std::string inside;
    if (has_pattern) {
      rules_.Common("key-char");
      inside = PatternRule(placed.schema["pattern"].get<std::string>(), placed.at + "/pattern");
    } else if (has_format) {
      const std::string format = placed.schema["format"].get<std::string>();
      if (FormatRule(format) == nullptr)
        FailAt(placed.at + "/format", "'" + format + "' is not supported, expected one of " + kFormatNames);
      inside = FormatRule(format);
    } else if (bounded) {
      inside = rules_.Common("char") + Counts(least, most);
    } else {
      return rules_.Common("string");
    }
    return rules_.Add("\"\\\"\" " + inside + " \"\\\"\"");
  }

  std::string Number(const Placed& placed, const std::string& type) {
    std::optional<int64_t> low, high;
    bool bounded = false;
    for (const char* key : kOfNumbers) {
      if (!placed.schema.contains(key)) continue;
      const Schema& value = placed.schema[key];
      const bool exclusive = key[0] == 'e';
      const bool is_low = std::string(key).find("inimum") != std::string::npos;
      if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX / 2) ||
          value.get<int64_t>() < INT64_MIN / 2) {
        FailAt(placed.at + "/" + key, "is " + Spelled(value) + ", expected a whole number from -2^62 to 2^62 - 1");
      }
      if (type == "number" && !(is_low && !exclusive && value == Schema(0))) {
        FailAt(placed.at + "/" + key, "not supported for type number, but for \"minimum\": 0; expected type integer");
      }
      const int64_t bound = value.get<int64_t>() + (exclusive ? (is_low ? 1 : -1) : 0);
      std::optional<int64_t>* side = is_low ? &low : &high;
      *side = !*side ? bound : is_low ? std::max(**side, bound) : std::min(**side, bound);
      bounded = true;
    }
    if (!bounded) return rules_.Common(type);
    if (type == "number") return rules_.Add("(\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)?");
    if (low && high && *low > *high) FailAt(placed.at, "no integer is in the range");
    return rules_.Add(IntegerRange(low, high));
  }

  // Items that have schemas of their own first, then any number of one kind.
  std::string List(const Placed& placed) {
    const Schema first = placed.schema.value("prefixItems", Schema::array());
    const Schema items = placed.schema.value("items", Schema(true));
    if (items.is_array()) FailAt(placed.at + "/items", "a list is not supported, expected prefixItems");
    const uint64_t least = Count(placed, "minItems", 0);
    uint64_t most = Count(placed, "maxItems", kUnlimited);
    const bool closed = items == Schema(false);
    if (closed) most = std::min<uint64_t>(most, first.size());
    const auto none = std::find(first.begin(), first.end(), Schema(false));
    if (none != first.end()) most = std::min<uint64_t>(most, static_cast<uint64_t>(none - first.begin()));
    if (least > most) FailAt(placed.at + "/minItems", "more items than the other keywords allow");
    const std::string ws = rules_.Common("ws");
    if (most == 0) return rules_.Add("\"[\" " + ws + " \"]\"");
    // From the last item to the first: what may follow each of them. Behind item i there is a comma, or the end.
    const uint64_t single = std::min<uint64_t>(first.size(), most);
    std::string rest;
    if (most > single) {
      const std::string item = AnyOf({items, placed.at + "/items"});
      const uint64_t needed = least > single ? least - single : 0;
      const uint64_t left = most == kUnlimited ? kUnlimited : most - single;
      CheckCount(placed, "minItems", needed);
      CheckCount(placed, "maxItems", left);
      if (single == 0) {  // the first of them has no comma before it
        const uint64_t behind = left == kUnlimited ? kUnlimited : left - 1;
        rest = item + " " + ws + " (\",\" " + ws + " " + item + " " + ws + ")" + Counts(needed > 0 ? needed - 1 : 0, behind);
      } else {
        rest = "(\",\" " + ws + " " + item + " " + ws + ")" + Counts(needed, left);
      }
    }
    for (uint64_t i = single; i-- > 0;) {
      const std::string item = AnyOf({first[i], placed.at + "/prefixItems/" + std::to_string(i)});
      rest = rules_.Add((i > 0 ? "\",\" " + ws + " " : "") + item + " " + ws + " " + rest);
      if (i > 0 && i >= least) rest += "?";
    }
    return rules_.Add("\"[\" " + ws + " (" + rest + ")" + (least == 0 ? "?" : "") + " \"]\"");
  }

  // Properties in their order, each at most once, then others.
  std::string Object(const Placed& placed) {
    Schema properties = placed.schema.value("properties", Schema::object());
    const Schema required = placed.schema.value("required", Schema::array());
    const Schema others = placed.schema.value("additionalProperties", Schema(true));
    const Schema named = properties;
    for (const Schema& name : required) {
      if (!name.is_string()) FailAt(placed.at + "/required", "has " + Spelled(name) + ", expected a list of names");
      if (properties.contains(name.get<std::string>())) continue;
      if (others == Schema(false)) {
        FailAt(placed.at + "/required", "has " + Spelled(name) + ", which \"additionalProperties\": false forbids");
      }
      properties[name.get<std::string>()] = others;
    }
    if (properties.empty() && others == Schema(true)) return rules_.Common("object");
    const std::string ws = rules_.Common("ws");
    std::string other, rest, firsts;
    if (others != Schema(false)) {
      other = rules_.Add(OtherKey(properties, placed.at, &rules_) + " \":\" " + ws + " " +
                         AnyOf({others, placed.at + "/additionalProperties"}) + " " + ws);
      rest = rules_.Add("(\",\" " + ws + " " + other + ")*");
      firsts = other + " " + rest;
    }
    bool may_be_empty = true;
    std::vector<std::pair<std::string, Schema>> list;
    for (const auto& [name, schema] : properties.items()) list.emplace_back(name, schema);
    for (size_t i = list.size(); i-- > 0;) {
      const auto& [name, schema] = list[i];
      const bool needed = std::find(required.begin(), required.end(), Schema(name)) != required.end();
      if (schema == Schema(false) && !needed) continue;
      const std::string value =
          AnyOf({schema, named.contains(name) ? Under(placed.at + "/properties", name) : placed.at + "/additionalProperties"});
      const std::string member = rules_.Add(Quoted(Schema(name).dump() + ":") + " " + ws + " " + value + " " + ws);
      // A list of members begins with the first property that is there.
      const std::string first = member + " " + rest;
      firsts = needed || firsts.empty() ? first : first + " | " + firsts;
      if (needed) may_be_empty = false;
      rest = rules_.Add("(\",\" " + ws + " " + member + ")" + (needed ? " " : "? ") + rest);
    }
    if (firsts.empty()) return rules_.Add("\"{\" " + ws + " \"}\"");
    return rules_.Add("\"{\" " + ws + " (" + firsts + ")" + (may_be_empty ? "?" : "") + " \"}\"");
  }

  const Schema& root_;
  Rules rules_;
  std::map<std::string, std::string> names_;  // of rules: by references, and by schemas that are made of others
  std::deque<Named> named_;
  int depth_ = 0;
};

}  // namespace

std::string GrammarOfJsonSchema(const std::string& schema, const std::string& where) {
  try {
    const Schema root = ParseJson(schema);
    return Compiler(root).Compile();
  } catch (const Failure& failure) {
    throw Failure(where + ": " + failure.what());
  } catch (const Schema::exception& error) {
    throw Failure(where + ": not a JSON schema: " + error.what());
  }
}

}  // namespace tarn::tools
