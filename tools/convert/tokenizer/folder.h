// The files beside a checkpoint that say what its tokenizer is.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_FOLDER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/convert/json/json.h"

namespace tarn::convert {

constexpr uint64_t kMaxTokenizerFileBytes = uint64_t{256} << 20;

bool IsFile(const std::string& path);

// The vocabulary of a model of Marian: the only file of the folder that is called vocab*.spm; "": there is none, or there are
// several.
std::string MarianVocabulary(const std::string& folder);

// The files of the folder that a tokenizer and a chat template may consist of, by name.
std::vector<std::string> TextFiles(const std::string& folder);

// Errors: as ReadFile() and ParseJson().
Json ReadJson(const std::string& path);
// The same for a file that is an object. Errors: it is something else.
Json ReadObject(const std::string& path);
// An empty object where there is no such file.
Json ReadObjectIfThere(const std::string& path);

// A member that is a string; "": there is none.
std::string StringOf(const Json& object, const char* key);

// tokenizer_config.json, and special_tokens_map.json, which older checkpoints have beside it. Either may be missing.
class TokenizerConfig {
 public:
  // Errors: as ReadObject().
  explicit TokenizerConfig(const std::string& folder);

  const Json& config() const { return files_[0].object; }
  const Json& special_tokens_map() const { return files_[1].object; }
  const std::string& path() const { return files_[0].path; }

  // Of tokenizer_config.json; nothing: absent or null. Errors: another type.
  std::optional<std::string> Text(const char* key) const;
  std::optional<bool> Bool(const char* key) const;
  // "tokenizer_class" without its "Fast"; where there is none, the class that `transformers` has for model_type of config.json. "":
  // no class is known.
  std::string ClassName() const;
  // The text of "bos_token" or the like: a string, or an object with "content". Nothing: both files lack it, or say null.
  // Errors: anything else, with the file and the field.
  std::optional<std::string> SpecialToken(const char* key) const;

 private:
  struct File {
    std::string path;
    Json object;
  };
  File files_[2];
  std::string model_type_;
};

// What tokenizer_config.json is to say in a folder without model_type: the same, and the class. "": nothing.
std::string TokenizerConfigText(const std::string& folder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_FOLDER_H_
