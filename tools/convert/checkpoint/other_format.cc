#include "tools/convert/checkpoint/other_format.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>

namespace tarn::convert {
namespace {

struct Format {
  const char* ending;
  const char* name;
  const char* advice;
};

constexpr char kOriginal[] = "take the checkpoint that it was made from";
constexpr char kSave[] = "load it with transformers, and save_pretrained(DIR) writes a checkpoint";
constexpr Format kFormats[] = {
    {".gguf", "a GGUF file", kOriginal},
    {".onnx", "an ONNX file", kOriginal},
    {".h5", "a TensorFlow checkpoint", kSave},
    {".msgpack", "a Flax checkpoint", kSave},
};
constexpr const char* kTorchEndings[] = {".bin", ".pt", ".pth", ".ckpt"};

}  // namespace

bool IsTorchFile(const std::filesystem::path& file) {
  std::error_code failed;
  const auto ends = [&](const char* ending) { return file.extension() == ending; };
  return std::any_of(std::begin(kTorchEndings), std::end(kTorchEndings), ends) && std::filesystem::is_regular_file(file, failed);
}

std::string OtherFormat(const std::string& path) {
  std::set<std::filesystem::path> files = {path};  // in the order of their names
  std::error_code failed;                          // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(path, failed)) files.insert(entry.path());
  for (const std::filesystem::path& file : files) {
    for (const Format& format : kFormats) {
      if (file.extension() != format.ending || !std::filesystem::is_regular_file(file, failed)) continue;
      return file.filename().string() + " is " + format.name + ", expected safetensors or a file of torch.save(): " + format.advice;
    }
  }
  return "";
}

}  // namespace tarn::convert
