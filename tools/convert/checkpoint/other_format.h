// Checkpoints of other formats, which are not read: what to say of them.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_OTHER_FORMAT_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_OTHER_FORMAT_H_

#include <string>

namespace tarn::convert {

// "pytorch_model.bin is a PyTorch checkpoint, expected safetensors: ..." of a file, or of the first such file of a directory, by
// its ending. "" if there is none.
std::string OtherFormat(const std::string& path);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_OTHER_FORMAT_H_
