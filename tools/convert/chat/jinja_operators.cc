#include "tools/convert/chat/jinja_operators.h"

#include <algorithm>
#include <utility>

#include "tools/convert/chat/jinja_calls.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Kind = JinjaValue::Kind;
using Value = JinjaValue;

Value CalculateNumber(const std::string& sign, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  if (sign == "+") {
    overflows = __builtin_add_overflow(left, right, &result);
  } else if (sign == "-") {
    overflows = __builtin_sub_overflow(left, right, &result);
  } else if (sign == "*") {
    overflows = __builtin_mul_overflow(left, right, &result);
  } else {
    if (right <= 0) Fail("\"", sign, "\" by ", right, " is not supported");
    const bool is_down = left % right < 0;  // rounded down, as Python does
    result = sign == "%" ? left % right + (is_down ? right : 0) : left / right - (is_down ? 1 : 0);
  }
  if (overflows || result == INT64_MIN) Fail("a number is too large");
  return Value::Integer(result);
}

}  // namespace

Value ItemAt(const Value& value, const Value& index, JinjaHeap* heap) {
  if (index.Is(Kind::kText)) return MemberOf(value, index.str(), /*is_attribute=*/false);
  if (value.Is(Kind::kUndefined)) Fail("\"", value.str(), "\" is undefined");
  const bool has_places = value.Is(Kind::kList) || value.Is(Kind::kText);
  if (!index.Is(Kind::kInteger) || !has_places)
    Fail(JinjaKindName(index), " as index of ", JinjaKindName(value), " is not supported");
  const int64_t size = LengthOf(value), at = index.number < 0 ? index.number + size : index.number;
  if (at < 0 || at >= size) return Value::Undefined("an item");
  return value.Is(Kind::kList) ? (*value.list)[static_cast<size_t>(at)] : ItemsOf(value, heap)[static_cast<size_t>(at)];
}

Value SliceOf(const Value& value, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step, JinjaHeap* heap) {
  if (!value.Is(Kind::kList) && !value.Is(Kind::kText)) Fail("a part of ", JinjaKindName(value), " is not supported");
  if (step != 1 && step != -1) Fail("a step of ", step, " is not supported, 1 or -1 is");
  const JinjaList items = ItemsOf(value, heap);
  const auto size = static_cast<int64_t>(items.size());
  // As Python's slice.indices().
  const auto clip = [&](std::optional<int64_t> place, int64_t otherwise) {
    if (!place) return otherwise;
    const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
    return std::clamp(*place < 0 ? *place + size : *place, least, most);
  };
  const int64_t first = clip(begin, step > 0 ? 0 : size - 1), last = clip(end, step > 0 ? size : -1);
  JinjaList part;
  for (int64_t at = first; step > 0 ? at < last : at > last; at += step) part.push_back(items[static_cast<size_t>(at)]);
  if (value.Is(Kind::kList)) return heap->List(std::move(part));
  std::string text;
  for (const Value& character : part) text += character.str();
  return Value::Text(std::move(text));
}

Value Negative(const Value& value) {
  if (!value.IsNumber()) Fail("- of ", JinjaKindName(value), " is not supported");
  return Value::Integer(-value.number);  // above the least one: literals and sums are
}

bool IsLess(const Value& left, const Value& right, JinjaHeap* heap) {
  if (left.IsNumber() && right.IsNumber()) return left.number < right.number;
  if (!left.Is(Kind::kText) || !right.Is(Kind::kText)) {
    Fail("a comparison of ", JinjaKindName(left), " with ", JinjaKindName(right), " is not supported");
  }
  heap->Spend(left.str().size() / 16);
  return left.str() < right.str();  // in the order of code points, as UTF-8 has it, too
}

Value Calculate(const std::string& sign, const Value& left, const Value& right, JinjaHeap* heap) {
  if (sign == "~" || (sign == "+" && left.Is(Kind::kText) && right.Is(Kind::kText))) {
    const std::string text = PrintedText(left) + PrintedText(right);
    heap->Spend(1 + text.size() / 16);
    return Value::Text(text);
  }
  if (sign == "+" && left.Is(Kind::kList) && right.Is(Kind::kList)) {
    JinjaList both = *left.list;
    both.insert(both.end(), right.list->begin(), right.list->end());
    return heap->List(std::move(both));
  }
  if (left.Is(Kind::kUndefined) || right.Is(Kind::kUndefined)) {
    Fail("\"", left.Is(Kind::kUndefined) ? left.str() : right.str(), "\" is undefined");
  }
  if (!left.IsNumber() || !right.IsNumber()) {
    Fail("\"", sign, "\" of ", JinjaKindName(left), " and ", JinjaKindName(right), " is not supported");
  }
  return CalculateNumber(sign, left.number, right.number);
}

bool Holds(const Value& left, const std::string& sign, const Value& right, JinjaHeap* heap) {
  if (sign == "==" || sign == "!=") return AreEqual(left, right, heap) == (sign == "==");
  if (sign == "in" || sign == "not in") return Contains(right, left, heap) == (sign == "in");
  if (sign == "<" || sign == ">=") return IsLess(left, right, heap) == (sign == "<");
  return IsLess(right, left, heap) == (sign == ">");
}

}  // namespace tarn::convert
