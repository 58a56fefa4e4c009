#include "runtime/model/foreign_file.h"

namespace tarn {

const char* ForeignFileText(const uint8_t*) { return ""; }

const char* ShortFileText(Span<const uint8_t>) { return "truncated or not a tarn model"; }

}  // namespace tarn
