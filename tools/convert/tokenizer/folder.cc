#include "tools/convert/tokenizer/folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string MarianVocabulary(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failed;  // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".spm" && path.filename().string().rfind("vocab", 0) == 0) found.push_back(path.string());
  }
  return found.size() == 1 ? found[0] : "";
}

Json ReadJson(const std::string& path) { return ParseJson(ReadFile(path, kMaxTokenizerFileBytes), path); }

Json ReadJsonIfThere(const std::string& path) { return IsFile(path) ? ReadJson(path) : Json::object(); }

std::string StringOf(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace tarn::convert
