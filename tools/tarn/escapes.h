// Escape sequences in a text of the command line (-e).
#ifndef TARN_TOOLS_TARN_ESCAPES_H_
#define TARN_TOOLS_TARN_ESCAPES_H_

#include <string>

namespace tarn_cli {

// \n \r \t \\ \' \" are those of C, \xHH is a byte, \uHHHH a character. Throws UsageError, which names `option`: any other one.
std::string Unescape(const std::string& text, const std::string& option);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_ESCAPES_H_
