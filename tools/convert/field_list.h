// The fields of config.json, as text: what the parsers read, what they take and what it means.
#ifndef TARN_TOOLS_CONVERT_FIELD_LIST_H_
#define TARN_TOOLS_CONVERT_FIELD_LIST_H_

#include <string>
#include <vector>

namespace tarn::convert {

// "config", the names of tasks and of the attention systems: what FieldList takes.
std::vector<std::string> FieldListNames();

// The fields of config.json ("config") or of the attention object of a system, and for a system the tensors that it adds to those
// of every attention layer. Lines of four columns, which two spaces or more separate: field, values, default, meaning. Errors: an
// unknown name.
std::string FieldList(const std::string& name);

// What the field means. `system`: "config" or the attention system. Errors: nobody has written it down (field_meanings.cc).
const char* MeaningOf(const std::string& system, const std::string& key);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FIELD_LIST_H_
