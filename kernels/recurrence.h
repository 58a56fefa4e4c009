// Arguments of the diagonal recurrence (MATH 1.10): h_t = a_t h_(t-1) + s(a_t) x_t for every column by itself.
#ifndef TARN_KERNELS_RECURRENCE_H_
#define TARN_KERNELS_RECURRENCE_H_

#include <cstddef>

#include "variants/recurrence.h"

namespace tarn {

// A chunk of C tokens of one sequence. A chunk gives the bits of its tokens one by one.
struct RecurrenceArgs {
  RecurrenceDecay decay;
  RecurrenceInput input;
  size_t tokens;   // C
  size_t width;    // n
  const float* x;  // [C, n], rows x_stride apart
  size_t x_stride;
  const float* gate;  // [C, n], rows gate_stride apart: logits of the decay
  size_t gate_stride;
  const float* constant;  // [n] floor, 0 to 1, or rate, 0 or more; nullptr: zeros
  bool first;             // no token was seen since the reset
  float* state;           // [n] h before the chunk; moved on to its end
  float* y;               // [C, n] h of every token, rows y_stride apart; may be x or gate
  size_t y_stride;
};

}  // namespace tarn

#endif  // TARN_KERNELS_RECURRENCE_H_
