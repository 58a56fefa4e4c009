// Code points of UTF-8 in the files of a tokenizer.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_UTF8_CODES_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_UTF8_CODES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tarn::convert {

// The length of the UTF-8 character that begins `text`, of at least one byte; 0: none does.
size_t DecodeUtf8(std::string_view text, uint32_t* code);

// Errors: not UTF-8.
std::vector<uint32_t> CodesOfUtf8(std::string_view text, const std::string& where);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_UTF8_CODES_H_
