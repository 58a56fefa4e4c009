// Attributes of a linear op: read once and checked. What they are, and what follows from them, is in variants/linear.h.
#ifndef TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_ATTRIBUTES_H_
#define TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_ATTRIBUTES_H_

#include "runtime/ops/op.h"
#include "variants/linear.h"

namespace tarn {

// Errors: TARN_BAD_FORMAT, which names the field.
Result<LinearAttributes> ReadLinearAttributes(const format::LinearState& table);

// The attributes in a few words, for people.
void DescribeLinear(const format::LinearState& table, char* text, size_t text_bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_ATTRIBUTES_H_
