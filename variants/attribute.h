// What an attribute of a variant may be. For the lists of attributes of the families.
#ifndef TARN_VARIANTS_ATTRIBUTE_H_
#define TARN_VARIANTS_ATTRIBUTE_H_

#include <cstdint>

namespace tarn {

// Of a float. Infinities are refused but by kNotNan, NaN always.
enum class Bounds : uint8_t { kFinite, kNotNegative, kPositive, kNotNan };

constexpr float kInfinity = __builtin_huge_valf();

constexpr bool IsWithin(Bounds bounds, float x) {
  const bool finite = x - x == 0.0f;
  switch (bounds) {
    case Bounds::kFinite:
      return finite;
    case Bounds::kNotNegative:
      return finite && x >= 0.0f;
    case Bounds::kPositive:
      return finite && x > 0.0f;
    case Bounds::kNotNan:
      break;
  }
  return x == x;
}

constexpr const char* TextOf(Bounds bounds) {
  switch (bounds) {
    case Bounds::kFinite:
      return "a finite number";
    case Bounds::kNotNegative:
      return "a number of at least 0";
    case Bounds::kPositive:
      return "a number above 0";
    case Bounds::kNotNan:
      break;
  }
  return "a number";
}

// A float member of `Attributes`, which a list of attributes makes.
template <typename Attributes>
struct FloatAttribute {
  const char* name;
  float Attributes::*value;
  Bounds bounds;
};

}  // namespace tarn

#endif  // TARN_VARIANTS_ATTRIBUTE_H_
