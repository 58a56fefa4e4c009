#include "tools/convert/tokenizer/folder.h"

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "tools/convert/json/error.h"
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

std::vector<std::string> TextFiles(const std::string& folder) {
  std::vector<std::string> found;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model", "spiece.model",
                           "sentencepiece.bpe.model", "vocab.json", "merges.txt", "vocab.txt", "rwkv_vocab.txt",
                           "rwkv_vocab_v20230424.txt", "characters.json", "chat_template.jinja", "generation_config.json"}) {
    if (IsFile(folder + "/" + name)) found.push_back(name);
  }
  const std::string marian = MarianVocabulary(folder);
  if (!marian.empty()) found.push_back(std::filesystem::path(marian).filename().string());
  return found;
}

Json ReadJson(const std::string& path) { return ParseJson(ReadFile(path, kMaxTokenizerFileBytes), path); }

Json ReadObject(const std::string& path) {
  Json file = ReadJson(path);
  if (!file.is_object()) Fail(path, ": ", ValueText(file), " is not an object");
  return file;
}

Json ReadObjectIfThere(const std::string& path) { return IsFile(path) ? ReadObject(path) : Json::object(); }

std::string StringOf(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

TokenizerConfig::TokenizerConfig(const std::string& folder) {
  const char* const names[] = {"/tokenizer_config.json", "/special_tokens_map.json"};
  for (size_t i = 0; i < std::size(names); ++i) files_[i] = {folder + names[i], ReadObjectIfThere(folder + names[i])};
}

std::optional<std::string> TokenizerConfig::Text(const char* key) const {
  const auto found = config().find(key);
  if (found == config().end() || found->is_null()) return std::nullopt;
  return Fields(config(), path()).Text(key);
}

std::optional<bool> TokenizerConfig::Bool(const char* key) const {
  const auto found = config().find(key);
  if (found == config().end() || found->is_null()) return std::nullopt;
  return Fields(config(), path()).Bool(key);
}

std::string TokenizerConfig::ClassName() const {
  std::string name = Text("tokenizer_class").value_or("");
  const std::string fast = "Fast";
  if (name.size() > fast.size() && name.compare(name.size() - fast.size(), fast.size(), fast) == 0) {
    name.resize(name.size() - fast.size());
  }
  return name;
}

std::optional<std::string> TokenizerConfig::SpecialToken(const char* key) const {
  for (const File& file : files_) {
    const auto found = file.object.find(key);
    if (found == file.object.end() || found->is_null()) continue;
    const Json text = found->is_object() ? found->value("content", Json()) : *found;
    if (!text.is_string()) Fail(file.path, ": ", key, ": ", ValueText(*found), ", a string or an object with \"content\" expected");
    return text.get<std::string>();
  }
  return std::nullopt;
}

}  // namespace tarn::convert
