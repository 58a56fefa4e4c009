// Options of Marian in YAML, of which it writes a small part: lines "key: value", and lists of values below a key.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_MARIAN_OPTIONS_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_MARIAN_OPTIONS_H_

#include <string>
#include <string_view>

namespace tarn::convert {

// As an object of JSON with model_type "marian_nmt". `where` begins every message.
// Errors: a line of another kind, by its number; a key that is there twice.
std::string MarianOptions(std::string_view yaml, const std::string& where);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_MARIAN_OPTIONS_H_
