// What the states of attention ops are stored as: F32, and where measurements allow it F16 or I8.
#ifndef TARN_TOOLS_CONVERT_CONFIG_STATE_TYPE_H_
#define TARN_TOOLS_CONVERT_CONFIG_STATE_TYPE_H_

#include "tools/convert/config/config.h"

namespace tarn::convert {

// Gives the states of every layer a dtype: F32, F16 or I8. Normalisers, maxima and rows that are computed with stay F32. `force`:
// F16 also where it loses more than rounding. A model with states of sources, which bear every type, keeps the others in F32 where
// they do not. Errors: a model without states; in a model without sources, a layer whose states do not bear it, or whose op cannot
// hold it, with layer, system, dtype and the reason.
void SetStateTypes(format::DType type, bool force, ModelConfig* config);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CONFIG_STATE_TYPE_H_
