// Operators of Jinja expressions.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_OPERATORS_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_OPERATORS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tools/convert/chat/jinja_value.h"

namespace tarn::convert {

// value[index]; undefined where there is none.
JinjaValue ItemAt(const JinjaValue& value, const JinjaValue& index, JinjaHeap* heap);
// value[begin:end:step]
JinjaValue SliceOf(const JinjaValue& value, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
                   JinjaHeap* heap);
JinjaValue Negative(const JinjaValue& value);
// left sign right: "==", "<", "in", "not in", ...
bool Holds(const JinjaValue& left, const std::string& sign, const JinjaValue& right, JinjaHeap* heap);
bool IsLess(const JinjaValue& left, const JinjaValue& right, JinjaHeap* heap);
// left sign right: "+", "-", "*", "//", "%", "~"
JinjaValue Calculate(const std::string& sign, const JinjaValue& left, const JinjaValue& right, JinjaHeap* heap);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_OPERATORS_H_
