// What a query of an attention op sees, as bits: a variant has one or more of the forms.
#ifndef TARN_VARIANTS_FORM_H_
#define TARN_VARIANTS_FORM_H_

#include <cstdint>

namespace tarn {

constexpr uint32_t kCausalForm = 1;     // the tokens up to its own
constexpr uint32_t kNoncausalForm = 2;  // all tokens of its sequence
constexpr uint32_t kCrossForm = 4;      // all tokens of a source, which has left a state

}  // namespace tarn

#endif  // TARN_VARIANTS_FORM_H_
