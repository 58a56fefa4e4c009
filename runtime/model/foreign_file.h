// What a file is that people open in place of a model: the ends of messages. On boards the model is a part of the program, and
// nothing is known of other files.
#ifndef TARN_RUNTIME_MODEL_FOREIGN_FILE_H_
#define TARN_RUNTIME_MODEL_FOREIGN_FILE_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"

namespace tarn {

constexpr size_t kForeignBytes = 64;

// By its first kForeignBytes, what goes on behind "not a tarn model"; "" where it is not known.
const char* ForeignFileText(const uint8_t* bytes);
// Of a file that is shorter than a header.
const char* ShortFileText(Span<const uint8_t> bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_FOREIGN_FILE_H_
