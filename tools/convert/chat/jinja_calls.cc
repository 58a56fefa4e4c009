#include "tools/convert/chat/jinja_calls.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "tools/convert/chat/jinja_text.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Kind = JinjaValue::Kind;
using Value = JinjaValue;

constexpr int64_t kMaxRange = 1 << 16;

bool IsOneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

// A text that an operation made.
Value MakeText(std::string_view text, JinjaHeap* heap) {
  heap->Spend(1 + text.size() / 16);
  return Value::Text(std::string(text));
}

[[noreturn]] void FailUse(const std::string& what, const std::string& name) {
  Fail("this use of the ", what, " \"", name, "\" is not supported");
}

const std::string& TextArgument(const JinjaArguments& arguments, size_t index, const std::string& name) {
  if (index >= arguments.values.size() || !arguments.values[index].Is(Kind::kText)) FailUse("method or filter", name);
  return arguments.values[index].str();
}

void CheckCount(const JinjaArguments& arguments, size_t least, size_t most, const char* what, const std::string& name) {
  if (!arguments.named.empty() || arguments.values.size() < least || arguments.values.size() > most) FailUse(what, name);
}

// Letters that are not ASCII need tables of Unicode.
std::string ChangeCase(const std::string& text, const std::string& name) {
  if (!IsAscii(text)) Fail("\"", name, "\" of letters that are not ASCII is not supported");
  std::string changed = text;
  bool upper = name != "lower";
  for (char& c : changed) {
    if (c >= 'a' && c <= 'z' && upper) c = static_cast<char>(c - 32);
    if (c >= 'A' && c <= 'Z' && !upper) c = static_cast<char>(c + 32);
    upper = name == "upper";
  }
  return changed;
}

std::string Replace(const std::string& text, const std::string& from, const std::string& to, JinjaHeap* heap) {
  if (from.empty()) Fail("replacing an empty text is not supported");
  std::string made;
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
    heap->Spend(1 + to.size() / 16);
    made.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  return made.append(text, at, std::string::npos);
}

Value Split(const std::string& text, const JinjaArguments& arguments, JinjaHeap* heap) {
  CheckCount(arguments, 0, 2, "method", "split");
  JinjaList parts;
  if (arguments.values.empty()) {
    for (std::string_view rest = StripSpaces(text, true, true); !rest.empty(); rest = StripSpaces(rest, true, false)) {
      size_t end = 0;
      while (end < rest.size() && StripSpaces(rest.substr(end), true, false).size() == rest.size() - end) {
        end += CharacterBytes(rest, end);
      }
      parts.push_back(MakeText(rest.substr(0, end), heap));
      rest.remove_prefix(end);
    }
    return heap->List(parts);
  }
  const std::string& by = TextArgument(arguments, 0, "split");
  if (by.empty()) FailUse("method", "split");
  size_t most = SIZE_MAX;
  if (arguments.values.size() == 2) {
    if (!arguments.values[1].Is(Kind::kInteger)) FailUse("method", "split");
    if (arguments.values[1].number >= 0) most = static_cast<size_t>(arguments.values[1].number);
  }
  size_t at = 0;
  for (size_t found = text.find(by); found != std::string::npos && parts.size() < most; found = text.find(by, at)) {
    parts.push_back(MakeText(std::string_view(text).substr(at, found - at), heap));
    at = found + by.size();
  }
  parts.push_back(MakeText(std::string_view(text).substr(at), heap));
  return heap->List(parts);
}

std::string Join(const JinjaList& items, const std::string& between, JinjaHeap* heap) {
  std::string text;
  for (const Value& item : items) {
    if (&item != items.data()) text += between;
    const std::string part = PrintedText(item);
    heap->Spend(1 + (part.size() + between.size()) / 16);
    text += part;
  }
  return text;
}

Value CallTextMethod(const std::string& text, const std::string& name, const JinjaArguments& arguments, JinjaHeap* heap) {
  heap->Spend(1 + text.size() / 16);
  const auto argument = [&](size_t index) -> const std::string& { return TextArgument(arguments, index, name); };
  const auto count = [&](size_t least, size_t most) { CheckCount(arguments, least, most, "method", name); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    count(0, 1);
    const bool at_begin = name != "rstrip", at_end = name != "lstrip";
    if (arguments.values.empty()) return MakeText(StripSpaces(text, at_begin, at_end), heap);
    heap->Spend(text.size() * (1 + argument(0).size() / 16));
    return MakeText(StripCharacters(text, argument(0), at_begin, at_end), heap);
  }
  if (name == "split") return Split(text, arguments, heap);
  if (name == "startswith" || name == "endswith") {
    count(1, 1);
    const std::string& part = argument(0);
    if (part.size() > text.size()) return Value::Bool(false);
    return Value::Bool(text.compare(name == "endswith" ? text.size() - part.size() : 0, part.size(), part) == 0);
  }
  if (name == "replace") {
    count(2, 2);
    return MakeText(Replace(text, argument(0), argument(1), heap), heap);
  }
  if (name == "upper" || name == "lower" || name == "capitalize") {
    count(0, 0);
    return MakeText(ChangeCase(text, name), heap);
  }
  if (name == "find") {
    count(1, 1);
    const size_t found = text.find(argument(0));
    if (found == std::string::npos) return Value::Integer(-1);
    return Value::Integer(static_cast<int64_t>(CountCharacters(std::string_view(text).substr(0, found))));
  }
  if (name == "join") {
    count(1, 1);
    if (!arguments.values[0].Is(Kind::kList)) FailUse("method", name);
    for (const Value& item : *arguments.values[0].list) {
      if (!item.Is(Kind::kText)) FailUse("method", name);
    }
    return MakeText(Join(*arguments.values[0].list, text, heap), heap);
  }
  Fail("the method \"", name, "\" of a text is not supported");
}

Value CallDictMethod(const JinjaDict& dict, const std::string& name, const JinjaArguments& arguments, JinjaHeap* heap) {
  heap->Spend(1 + dict.size());
  if (name == "get") {
    CheckCount(arguments, 1, 2, "method", name);
    const std::string& key = TextArgument(arguments, 0, name);
    for (const auto& one : dict) {
      if (one.first == key) return one.second;
    }
    return arguments.values.size() == 2 ? arguments.values[1] : Value::None();
  }
  if (!IsOneOf(name, {"items", "keys", "values"})) Fail("the method \"", name, "\" of a dict is not supported");
  CheckCount(arguments, 0, 0, "method", name);
  JinjaList list;
  for (const auto& one : dict) {
    const Value key = Value::Text(one.first);
    list.push_back(name == "keys" ? key : name == "values" ? one.second : heap->List({key, one.second}));
  }
  return heap->List(list);
}

void AppendJson(const Value& value, int depth, JinjaHeap* heap, std::string* json) {
  if (depth > 32) Fail("tojson of lists that are more than 32 deep");
  heap->Spend(1);
  if (value.Is(Kind::kText)) {
    json->push_back('"');
    for (const char c : value.str()) {
      constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kNames = "\"\\nrtbf";
      const size_t found = kEscaped.find(c);
      if (found != std::string_view::npos) {
        json->append({'\\', kNames[found]});
      } else if (static_cast<uint8_t>(c) < 0x20) {
        constexpr char kDigits[] = "0123456789abcdef";
        json->append("\\u00").append({kDigits[c >> 4], kDigits[c & 15]});
      } else {
        json->push_back(c);
      }
    }
    heap->Spend(value.str().size() / 16);
    json->push_back('"');
  } else if (value.Is(Kind::kList)) {
    for (const Value& item : *value.list) {
      json->append(&item == value.list->data() ? "[" : ", ");
      AppendJson(item, depth + 1, heap, json);
    }
    json->append(value.list->empty() ? "[]" : "]");
  } else if (value.Is(Kind::kDict)) {
    for (const auto& one : *value.dict) {
      json->append(&one == value.dict->data() ? "{" : ", ");
      AppendJson(Value::Text(one.first), depth + 1, heap, json);
      json->append(": ");
      AppendJson(one.second, depth + 1, heap, json);
    }
    json->append(value.dict->empty() ? "{}" : "}");
  } else if (value.Is(Kind::kBool)) {
    json->append(value.number != 0 ? "true" : "false");
  } else if (value.Is(Kind::kNone) || value.Is(Kind::kInteger)) {
    json->append(value.Is(Kind::kNone) ? "null" : std::to_string(value.number));
  } else {
    Fail("tojson of ", JinjaKindName(value), " is not supported");
  }
}

Value EndOf(const Value& value, bool first, JinjaHeap* heap) {
  const JinjaList items = ItemsOf(value, heap);
  if (items.empty()) return Value::Undefined("an item");
  return first ? items.front() : items.back();
}

Value Default(const Value& value, const JinjaArguments& arguments) {
  if (arguments.values.size() > 2) FailUse("filter", "default");
  bool for_all_false = arguments.values.size() == 2 && IsTrue(arguments.values[1]);
  for (const auto& [name, argument] : arguments.named) {
    if (name != "boolean") FailUse("filter", "default");
    for_all_false = IsTrue(argument);
  }
  if (!value.Is(Kind::kUndefined) && (!for_all_false || IsTrue(value))) return value;
  return arguments.values.empty() ? Value::Text("") : arguments.values[0];
}

}  // namespace

Value CallMethod(const Value& value, const std::string& name, const JinjaArguments& arguments, JinjaHeap* heap) {
  if (value.Is(Kind::kText)) return CallTextMethod(value.str(), name, arguments, heap);
  if (value.Is(Kind::kDict)) return CallDictMethod(*value.dict, name, arguments, heap);
  if (value.Is(Kind::kUndefined)) Fail("\"", value.str(), "\" is undefined");
  Fail("the method \"", name, "\" of ", JinjaKindName(value), " is not supported");
}

Value CallFilter(const std::string& name, const Value& value, const JinjaArguments& arguments, JinjaHeap* heap) {
  const auto count = [&](size_t least, size_t most) { CheckCount(arguments, least, most, "filter", name); };
  if (name == "default" || name == "d") return Default(value, arguments);
  if (IsOneOf(name, {"trim", "upper", "lower", "capitalize", "replace"})) {
    if (name == "replace") count(2, 2);
    return CallTextMethod(PrintedText(value), name == "trim" ? "strip" : name, arguments, heap);
  }
  if (name == "join") {
    count(0, 1);
    return MakeText(Join(ItemsOf(value, heap), arguments.values.empty() ? "" : TextArgument(arguments, 0, name), heap), heap);
  }
  count(0, 0);
  if (name == "length" || name == "count") return Value::Integer(LengthOf(value));
  if (name == "string") return MakeText(PrintedText(value), heap);
  if (name == "first" || name == "last") return EndOf(value, name == "first", heap);
  if (name == "list") return heap->List(ItemsOf(value, heap));
  if (name == "items" && value.Is(Kind::kDict)) return CallDictMethod(*value.dict, name, {}, heap);
  if (name == "tojson") {
    std::string json;
    AppendJson(value, 0, heap, &json);
    return MakeText(json, heap);
  }
  Fail("the filter \"", name, "\" is not supported");
}

bool CallTest(const std::string& name, const Value& value, const JinjaArguments& arguments, JinjaHeap* heap) {
  const bool takes_one = IsOneOf(name, {"equalto", "eq", "==", "ne", "in", "divisibleby"});
  CheckCount(arguments, takes_one ? 1 : 0, takes_one ? 1 : 0, "test", name);
  if (name == "defined" || name == "undefined") return value.Is(Kind::kUndefined) == (name == "undefined");
  if (name == "none") return value.Is(Kind::kNone);
  if (name == "string") return value.Is(Kind::kText);
  if (name == "boolean") return value.Is(Kind::kBool);
  if (name == "true" || name == "false") return value.Is(Kind::kBool) && (value.number != 0) == (name == "true");
  if (name == "integer") return value.Is(Kind::kInteger);
  if (name == "number") return value.IsNumber();
  if (name == "mapping") return value.Is(Kind::kDict);
  if (name == "iterable" || name == "sequence") {
    if (value.Is(Kind::kUndefined)) FailUse("test", name);
    return value.Is(Kind::kText) || value.Is(Kind::kList) || value.Is(Kind::kDict);
  }
  if (name == "callable") return value.Is(Kind::kMacro) || value.Is(Kind::kBuiltin) || value.Is(Kind::kUndefined);
  if (name == "equalto" || name == "eq") return AreEqual(value, arguments.values[0], heap);
  if (name == "ne") return !AreEqual(value, arguments.values[0], heap);
  if (name == "in") return Contains(arguments.values[0], value, heap);
  if (IsOneOf(name, {"odd", "even", "divisibleby"})) {
    const int64_t by = takes_one ? arguments.values[0].number : 2;
    if (!value.IsNumber() || by <= 0 || (takes_one && !arguments.values[0].IsNumber())) FailUse("test", name);
    return (value.number % by == 0) == (name != "odd");
  }
  Fail("the test \"", name, "\" is not supported");
}

Value RangeOf(const JinjaArguments& arguments, JinjaHeap* heap) {
  const size_t count = arguments.values.size();
  for (const Value& one : arguments.values) {
    if (!one.Is(Kind::kInteger)) FailUse("function", "range");
  }
  if (!arguments.named.empty() || count < 1 || count > 2) FailUse("function", "range");
  const int64_t begin = count == 1 ? 0 : arguments.values[0].number, end = arguments.values[count - 1].number;
  if (begin < -kMaxRange || end > kMaxRange) Fail("a range from ", begin, " to ", end, " is not supported");
  JinjaList items;
  for (int64_t i = begin; i < end; ++i) items.push_back(Value::Integer(i));
  return heap->List(std::move(items));
}

bool Contains(const Value& right, const Value& left, JinjaHeap* heap) {
  if (right.Is(Kind::kText)) {
    if (!left.Is(Kind::kText)) Fail(JinjaKindName(left), " in a text: a text expected");
    heap->Spend(1 + right.str().size() / 16);
    return right.str().find(left.str()) != std::string::npos;
  }
  if (right.Is(Kind::kList)) {
    return std::any_of(right.list->begin(), right.list->end(), [&](const Value& one) { return AreEqual(one, left, heap); });
  }
  if (right.Is(Kind::kDict) && left.Is(Kind::kText)) {
    heap->Spend(1 + right.dict->size());
    return std::any_of(right.dict->begin(), right.dict->end(), [&](const auto& one) { return one.first == left.str(); });
  }
  if (right.Is(Kind::kUndefined)) return false;
  Fail("\"in\" ", JinjaKindName(right), " is not supported");
}

JinjaList ItemsOf(const Value& value, JinjaHeap* heap) {
  if (value.Is(Kind::kUndefined)) return {};
  JinjaList items;
  if (value.Is(Kind::kList)) {
    items = *value.list;
  } else if (value.Is(Kind::kDict)) {
    for (const auto& one : *value.dict) items.push_back(Value::Text(one.first));
  } else if (value.Is(Kind::kText)) {
    const std::string& text = value.str();
    heap->Spend(text.size());
    for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
      bytes = CharacterBytes(text, at);
      items.push_back(Value::Text(text.substr(at, bytes)));
    }
  } else {
    Fail(JinjaKindName(value), " has no items");
  }
  heap->Spend(1 + items.size());
  return items;
}

int64_t LengthOf(const Value& value) {
  if (value.Is(Kind::kUndefined)) return 0;
  if (value.Is(Kind::kText)) return static_cast<int64_t>(CountCharacters(value.str()));
  if (value.Is(Kind::kList)) return static_cast<int64_t>(value.list->size());
  if (value.Is(Kind::kDict)) return static_cast<int64_t>(value.dict->size());
  Fail(JinjaKindName(value), " has no length");
}

namespace {

Value LoopMember(JinjaLoop* loop, const std::string& name) {
  const auto at = static_cast<int64_t>(loop->at);
  const auto size = [loop] {
    while (loop->Has(loop->items.size())) {
    }
    return static_cast<int64_t>(loop->items.size());
  };
  if (name == "index0") return Value::Integer(at);
  if (name == "index") return Value::Integer(at + 1);
  if (name == "revindex0") return Value::Integer(size() - at - 1);
  if (name == "revindex") return Value::Integer(size() - at);
  if (name == "first") return Value::Bool(at == 0);
  if (name == "last") return Value::Bool(!loop->Has(loop->at + 1));
  if (name == "length") return Value::Integer(size());
  if (name == "previtem") return at == 0 ? Value::Undefined("loop.previtem") : loop->items[loop->at - 1];
  if (name == "nextitem") return loop->Has(loop->at + 1) ? loop->items[loop->at + 1] : Value::Undefined("loop.nextitem");
  Fail("\"loop.", name, "\" is not supported");
}

}  // namespace

Value MemberOf(const Value& value, const std::string& name, bool is_attribute) {
  if (value.Is(Kind::kUndefined)) Fail("\"", value.str(), "\" is undefined");
  if (value.Is(Kind::kLoop)) return LoopMember(value.loop, name);
  if (value.Is(Kind::kDict) || value.Is(Kind::kNamespace)) {
    const auto found = std::find_if(value.dict->begin(), value.dict->end(), [&](const auto& one) { return one.first == name; });
    const bool is_method =
        value.Is(Kind::kDict) && (is_attribute || found == value.dict->end()) &&
        IsOneOf(name, {"clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"});
    if (is_method) Fail("the method \"", name, "\" is not called");
    return found != value.dict->end() ? found->second : Value::Undefined(name);
  }
  if (value.Is(Kind::kNone) && name[0] != '_') return Value::Undefined(name);
  // Those that Python has are methods; these are what a message of several parts would have. A macro has a name.
  if (!value.Is(Kind::kMacro) && IsOneOf(name, {"text", "type", "content", "role", "tool_calls", "name", "image", "value"}))
    return Value::Undefined(name);
  Fail("\"", name, "\" of ", JinjaKindName(value), " is not supported");
}

}  // namespace tarn::convert
