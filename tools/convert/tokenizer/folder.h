// The files beside a checkpoint that say what its tokenizer is.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_FOLDER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_FOLDER_H_

#include <cstdint>
#include <string>

#include "tools/convert/json/json.h"

namespace tarn::convert {

constexpr uint64_t kMaxTokenizerFileBytes = uint64_t{256} << 20;

bool IsFile(const std::string& path);

// The vocabulary of a model of Marian: the only file of the folder that is called vocab*.spm; "": there is none, or there are
// several.
std::string MarianVocabulary(const std::string& folder);

// Errors: as ReadFile() and ParseJson().
Json ReadJson(const std::string& path);
// An empty object where there is no such file.
Json ReadJsonIfThere(const std::string& path);

// A member that is a string; "": there is none.
std::string StringOf(const Json& object, const char* key);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_FOLDER_H_
