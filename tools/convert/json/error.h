// ConvertError: what the user did not expect, in one line that names the file, the tensor or field, and the value.
#ifndef TARN_TOOLS_CONVERT_JSON_ERROR_H_
#define TARN_TOOLS_CONVERT_JSON_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tools/common/failure.h"
#include "tools/common/shape_text.h"

namespace tarn::convert {

using ConvertError = tools::Failure;
using tools::ShapeText;

// Throws the parts, one after the other, as a ConvertError.
template <typename... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // else a lack of memory is a message that ends early
  (text << ... << parts);
  throw ConvertError(text.str());
}

// "[2, 17]": where element `flat` lies in a tensor of this shape.
template <typename Shape>
std::string IndexText(const Shape& shape, uint64_t flat) {
  std::vector<uint64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return ShapeText(index);
}

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_JSON_ERROR_H_
