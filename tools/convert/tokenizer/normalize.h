// The normalizers of tokenizer.json, compiled into tables that runtime/text/normalize.h runs.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::convert {

struct NormalizerStep {
  enum class Kind : uint8_t { kNfc, kNfd, kNfkc, kNfkd, kLowercase, kStripAccents, kPrepend, kReplace };
  Kind kind;
  std::string text = {};     // kPrepend: what; kReplace: what is looked for
  std::string content = {};  // kReplace: what replaces it
};

// The words of runtime/text/normalize_format.h: the steps, one after the other, with the Unicode data that they need.
// Errors: more than 8 steps; a text that is empty, longer than 32 characters or not UTF-8. The line begins with `where`.
std::vector<uint16_t> CompileNormalizer(const std::vector<NormalizerStep>& steps, const std::string& where);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZE_H_
