// Filters, tests and methods of values: functions of their arguments alone.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_CALLS_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_CALLS_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/convert/chat/jinja_value.h"

namespace tarn::convert {

struct JinjaArguments {
  std::vector<JinjaValue> values;
  std::vector<std::pair<std::string, JinjaValue>> named;
};

// value | name(arguments). Errors: a filter, or a use of it, that is not supported.
JinjaValue CallFilter(const std::string& name, const JinjaValue& value, const JinjaArguments& arguments, JinjaHeap* heap);
// value is name(arguments)
bool CallTest(const std::string& name, const JinjaValue& value, const JinjaArguments& arguments, JinjaHeap* heap);
// value.name(arguments), of a text or a dict
JinjaValue CallMethod(const JinjaValue& value, const std::string& name, const JinjaArguments& arguments, JinjaHeap* heap);

// range(arguments)
JinjaValue RangeOf(const JinjaArguments& arguments, JinjaHeap* heap);

// `left` in `right`
bool Contains(const JinjaValue& right, const JinjaValue& left, JinjaHeap* heap);
// What a loop goes over. Errors: something that has no items.
JinjaList ItemsOf(const JinjaValue& value, JinjaHeap* heap);
// Number of characters, items.
int64_t LengthOf(const JinjaValue& value);
// value.name, value["name"]; undefined where there is none.
JinjaValue MemberOf(const JinjaValue& value, const std::string& name, bool is_attribute);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_CALLS_H_
