#include "tools/convert/tokenizer/folder.h"

#include <sys/stat.h>

#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Json ReadJson(const std::string& path) { return ParseJson(ReadFile(path, kMaxTokenizerFileBytes), path); }

Json ReadJsonIfThere(const std::string& path) { return IsFile(path) ? ReadJson(path) : Json::object(); }

std::string StringOf(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace tarn::convert
