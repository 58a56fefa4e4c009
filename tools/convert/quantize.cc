#include "tools/convert/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tarn::convert {

float QuantizeRow(const float* w, size_t count, int8_t* q) {
  float max = 0;
  for (size_t i = 0; i < count; ++i) max = std::max(max, std::fabs(w[i]));
  // A subnormal scale would have too few digits: such a row is zero for all purposes, and the smallest normal scale says so.
  const float scale = max == 0 ? 1.0f : std::max(max / 127.0f, std::numeric_limits<float>::min());
  for (size_t i = 0; i < count; ++i) {
    const long rounded = std::lrintf(w[i] / scale);
    q[i] = static_cast<int8_t>(std::clamp(rounded, -127L, 127L));
  }
  return scale;
}

}  // namespace tarn::convert
