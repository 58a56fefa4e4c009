// How a row of numbers becomes 8-bit integers: the scale and the zero point that follow from its range. One definition for every
// table of kernels: a number that falls between two integers is rounded by these, so a last-bit difference here would be a whole
// step there.
#ifndef TARN_KERNELS_QUANTIZATION_H_
#define TARN_KERNELS_QUANTIZATION_H_

#include <cstdint>

namespace tarn {

// A row of x, quantized as it comes: x ~ scale * (q - zero_point), q and zero_point in [0, 255].
struct Qdu8 {
  float scale;
  int32_t zero_point;
};

// Of activations, whose elements lie in [low, high]; a bound is NaN where the row holds one. Where the range is not finite, the
// scale is NaN, and every element is to become 0 (of u8).
struct Qdu8Row {
  Qdu8 params;
  float inverse;  // of the scale: elements are multiplied by this
};
Qdu8Row ChooseQdu8(float low, float high);

// Of a stored row, symmetric: x ~ scale * q, q in [-127, 127], where the largest element has the size `largest`. A row that is not
// finite has the scale NaN; with `inverse` 0 every element is to become 0.
struct I8Row {
  float scale;
  float inverse;  // elements are multiplied by this
};
I8Row ChooseI8(float largest);

}  // namespace tarn

#endif  // TARN_KERNELS_QUANTIZATION_H_
