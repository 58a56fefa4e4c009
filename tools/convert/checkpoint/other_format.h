// What kind of file a name stands for: checkpoints of other formats are not read, and this says what to say of them.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_OTHER_FORMAT_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_OTHER_FORMAT_H_

#include <filesystem>
#include <string>

namespace tarn::convert {

// Whether a file has an ending that files of torch.save() have.
bool IsTorchFile(const std::filesystem::path& file);

// "model.gguf is a GGUF file, ..." of a file, or of the first such file of a directory, by its ending. "" if there is none.
std::string OtherFormat(const std::string& path);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_OTHER_FORMAT_H_
