#include "tools/convert/checkpoint/other_format.h"

#include <filesystem>
#include <set>
#include <system_error>

namespace tarn::convert {
namespace {

struct Format {
  const char* ending;
  const char* name;
  const char* advice;
};

constexpr char kSave[] = "torch.load() it, and write its tensors to model.safetensors with safetensors.torch.save_file()";
constexpr char kOriginal[] = "take the checkpoint that it was made from";
constexpr Format kFormats[] = {
    {".bin", "a PyTorch checkpoint", kSave},  {".pt", "a PyTorch checkpoint", kSave}, {".pth", "a PyTorch checkpoint", kSave},
    {".ckpt", "a PyTorch checkpoint", kSave}, {".gguf", "a GGUF file", kOriginal},    {".onnx", "an ONNX file", kOriginal},
};

}  // namespace

std::string OtherFormat(const std::string& path) {
  std::set<std::filesystem::path> files = {path};  // in the order of their names
  std::error_code failed;                          // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(path, failed)) files.insert(entry.path());
  for (const std::filesystem::path& file : files) {
    for (const Format& format : kFormats) {
      if (file.extension() != format.ending || !std::filesystem::is_regular_file(file, failed)) continue;
      return file.filename().string() + " is " + format.name + ", expected safetensors: " + format.advice;
    }
  }
  return "";
}

}  // namespace tarn::convert
