// Shapes as people read them.
#ifndef TARN_TOOLS_COMMON_SHAPE_TEXT_H_
#define TARN_TOOLS_COMMON_SHAPE_TEXT_H_

#include <cstddef>
#include <string>

namespace tarn::tools {

// "[4, 64, 64]": of whatever has integers in an order.
template <typename Shape>
std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_SHAPE_TEXT_H_
