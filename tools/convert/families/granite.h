// The factors of Granite: of embeddings, of what each part adds, of attention logits and of the logits.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_GRANITE_H_
#define TARN_TOOLS_CONVERT_FAMILIES_GRANITE_H_

#include "tools/convert/families/family.h"

namespace tarn::convert {

// Folds them into what `translation` has by now, and says what scales attention logits. Returns the factor of what a part adds.
// Errors: rope that scales attention logits, too.
float FoldGranite(ForeignConfig* config, Translation* translation);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_GRANITE_H_
