#include "tools/convert/tokenizer/folder.h"

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/json/python_json.h"

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
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.model",
        "spiece.model", "sentencepiece.bpe.model", "vocab.json", "merges.txt", "vocab.txt", "rwkv_vocab.txt",
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
  const std::string path = folder + "/config.json";  // some have numbers that JSON lacks
  if (IsFile(path)) {
    model_type_ = StringOf(ParseJson(WithQuotedInfinities(ReadFile(path, kMaxTokenizerFileBytes)), path), "model_type");
  }
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
  constexpr struct {
    const char *model_type, *name;
  } kClasses[] = {{"gemma", "GemmaTokenizer"},
                  {"gemma2", "GemmaTokenizer"},
                  {"gemma3", "GemmaTokenizer"},
                  {"gemma3_text", "GemmaTokenizer"},
                  {"llama", "LlamaTokenizer"},
                  {"m2m_100", "M2M100Tokenizer"},
                  {"mbart", "MBartTokenizer"},
                  {"mistral", "LlamaTokenizer"},
                  {"mt5", "MT5Tokenizer"},
                  {"phi3", "LlamaTokenizer"},
                  {"t5", "T5Tokenizer"},
                  {"umt5", "T5Tokenizer"},
                  {"recurrent_gemma", "GemmaTokenizer"},
                  {"xglm", "XGLMTokenizer"},
                  {"xlm-roberta", "XLMRobertaTokenizer"}};
  std::string name = Text("tokenizer_class").value_or("");
  for (const auto& known : kClasses) {
    if (name.empty() && model_type_ == known.model_type) return known.name;
  }
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

std::string TokenizerConfigText(const std::string& folder) {
  const TokenizerConfig config(folder);
  Json object = config.config();
  const std::string name = config.ClassName();
  if (name.empty() && !IsFile(config.path())) return "";
  if (!name.empty() && StringOf(object, "tokenizer_class").empty()) object["tokenizer_class"] = name;
  return object.dump(2) + "\n";
}

}  // namespace tarn::convert
