#include "runtime/model/foreign_file.h"

namespace tarn {

const char* ForeignFileText(const uint8_t*) { return ""; }

}  // namespace tarn
