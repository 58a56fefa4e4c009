// The op DiagonalRecurrence.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_RECURRENCE_H_
#define TARN_TOOLS_CONVERT_ATTENTION_RECURRENCE_H_

#include <cstdint>
#include <vector>

#include "tools/convert/attention/attention.h"
#include "variants/recurrence.h"

namespace tarn::convert {

AttributeWriter RecurrenceAttributes(RecurrenceDecay decay, RecurrenceInput input);
// rate [width] of the exponential decay: scale * softplus(rate_logit).
std::vector<WeightSpec> RateParts(const std::string& prefix, uint32_t width);
Fold RateFold(float scale);
// h [width], F32.
GraphState RecurrenceState(uint32_t width);

constexpr char kRecurrenceFeature[] = "recurrence";  // of required_features

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_RECURRENCE_H_
