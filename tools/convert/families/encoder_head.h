// What families of encoders say about their head.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_ENCODER_HEAD_H_
#define TARN_TOOLS_CONVERT_FAMILIES_ENCODER_HEAD_H_

#include <cstdint>
#include <string>

#include "tools/convert/json/json.h"

namespace tarn::convert {

// The first name of "architectures". Errors: there is none.
std::string HeadArchitecture(Fields* fields);

// Of a classifier. Errors: several labels that may hold at once, or numbers in place of labels, by problem_type.
uint32_t LabelCount(Fields* fields);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_ENCODER_HEAD_H_
