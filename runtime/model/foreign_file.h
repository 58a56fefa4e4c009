// What a file is that people open in place of a model, and what it is for: the end of a message, which goes on behind "not a tarn
// model"; "" where it is not known. `bytes`: kForeignBytes from the begin of the file. On boards the model is a part of the
// program, and nothing is known.
#ifndef TARN_RUNTIME_MODEL_FOREIGN_FILE_H_
#define TARN_RUNTIME_MODEL_FOREIGN_FILE_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr size_t kForeignBytes = 64;

const char* ForeignFileText(const uint8_t* bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_FOREIGN_FILE_H_
