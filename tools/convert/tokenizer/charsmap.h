// The charsmap of SentencePiece, as tokenizer.json and .model files have it, made ready for runtime/text/charsmap.h.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_CHARSMAP_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_CHARSMAP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tarn::convert {

// The bytes of a text in base64. Errors: another character, an incomplete end; the line begins with `where`.
std::string DecodeBase64(std::string_view text, const std::string& where);
std::string EncodeBase64(std::string_view bytes);

// The words of runtime/text/charsmap.h. `bytes`: the size of the double array in bytes, the double array, the texts. Errors: sizes
// that do not fit, a charsmap that the runtime would refuse; the line begins with `where`.
std::vector<uint16_t> CompileCharsMap(std::string_view bytes, const std::string& where);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_CHARSMAP_H_
