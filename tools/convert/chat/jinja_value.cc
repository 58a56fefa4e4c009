#include "tools/convert/chat/jinja_value.h"

#include <algorithm>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Kind = JinjaValue::Kind;

constexpr size_t kMaxSteps = 1u << 18;
constexpr int kMaxDepth = 32;  // of lists in lists

const JinjaValue* Find(const JinjaDict& dict, const std::string& key) {
  const auto found = std::find_if(dict.begin(), dict.end(), [&](const auto& one) { return one.first == key; });
  return found == dict.end() ? nullptr : &found->second;
}

}  // namespace

void JinjaHeap::Spend(size_t steps) {
  spent_ += std::min(steps, kMaxSteps + 1);
  if (spent_ > kMaxSteps) Fail("the template takes more than ", kMaxSteps, " steps");
}

JinjaValue JinjaHeap::List(JinjaList items) {
  Spend(1 + items.size());
  JinjaValue made;
  made.kind = Kind::kList;
  made.list = &lists_.emplace_back(std::move(items));
  return made;
}

JinjaValue JinjaHeap::Dict(JinjaDict items, Kind kind) {
  Spend(1 + items.size());
  JinjaValue made;
  made.kind = kind;
  made.dict = &dicts_.emplace_back(std::move(items));
  return made;
}

JinjaLoop* JinjaHeap::Loop() { return &loops_.emplace_back(); }

const char* JinjaKindName(const JinjaValue& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "something undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "a bool";
    case Kind::kInteger:
      return "an integer";
    case Kind::kText:
      return "a text";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "a dict";
    case Kind::kNamespace:
      return "a namespace";
    case Kind::kLoop:
      return "the loop";
    case Kind::kMacro:
    case Kind::kBuiltin:
      return "a function";
  }
  return "";
}

bool IsTrue(const JinjaValue& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return value.number != 0;
    case Kind::kText:
      return !value.str().empty();
    case Kind::kList:
      return !value.list->empty();
    case Kind::kDict:
      return !value.dict->empty();
    default:
      return true;
  }
}

bool AreEqual(const JinjaValue& left, const JinjaValue& right, JinjaHeap* heap, int depth) {
  if (depth > kMaxDepth) Fail("a comparison of lists that are more than ", kMaxDepth, " deep");
  heap->Spend(1);
  if (left.IsNumber() && right.IsNumber()) return left.number == right.number;
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      heap->Spend(left.str().size() / 16);
      return left.str() == right.str();
    case Kind::kList:
      return left.list->size() == right.list->size() &&
             std::equal(left.list->begin(), left.list->end(), right.list->begin(),
                        [&](const JinjaValue& a, const JinjaValue& b) { return AreEqual(a, b, heap, depth + 1); });
    case Kind::kDict:
      return left.dict->size() == right.dict->size() && std::all_of(left.dict->begin(), left.dict->end(), [&](const auto& one) {
               heap->Spend(right.dict->size());
               const JinjaValue* other = Find(*right.dict, one.first);
               return other != nullptr && AreEqual(one.second, *other, heap, depth + 1);
             });
    default:
      Fail("a comparison of ", JinjaKindName(left), " is not supported");
  }
}

void PutMember(const std::string& key, const JinjaValue& value, JinjaDict* dict, JinjaHeap* heap) {
  heap->Spend(1 + dict->size());
  const auto found = std::find_if(dict->begin(), dict->end(), [&](const auto& one) { return one.first == key; });
  if (found == dict->end()) {
    dict->emplace_back(key, value);
  } else {
    found->second = value;
  }
}

std::string PrintedText(const JinjaValue& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.number != 0 ? "True" : "False";
    case Kind::kInteger:
      return std::to_string(value.number);
    case Kind::kText:
      return value.str();
    default:
      Fail(JinjaKindName(value), " as text is not supported");
  }
}

}  // namespace tarn::convert
