// What the states of an attention op are stored as: F32, and where measurements allow it F16 or I8.
#ifndef TARN_TOOLS_CONVERT_STATE_TYPE_H_
#define TARN_TOOLS_CONVERT_STATE_TYPE_H_

#include <vector>

#include "tools/convert/attention.h"

namespace tarn::convert {

// Gives the states of every layer a dtype: F32, F16 or I8. Normalisers, maxima and rows that are computed with stay F32. `force`:
// F16 also where it loses more than rounding. Errors, which name layer, system, dtype and the reason: a layer whose states do not
// bear it, or whose op cannot hold it.
void SetStateType(format::DType type, bool force, std::vector<AttentionOp>* layers);
// The same, but layers that do not bear the type stay F32: for models that have other states which do.
void SetStateTypeWherePossible(format::DType type, bool force, std::vector<AttentionOp>* layers);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_STATE_TYPE_H_
