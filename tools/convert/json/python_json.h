// JSON as Python writes it, which has words for numbers that JSON lacks.
#ifndef TARN_TOOLS_CONVERT_JSON_PYTHON_JSON_H_
#define TARN_TOOLS_CONVERT_JSON_PYTHON_JSON_H_

#include <string>
#include <string_view>

namespace tarn::convert {

// The text with NaN, Infinity and -Infinity in quotes.
std::string WithQuotedInfinities(std::string_view text);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_JSON_PYTHON_JSON_H_
