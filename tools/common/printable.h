// Text that came from a file or a command line, for a terminal.
#ifndef TARN_TOOLS_COMMON_PRINTABLE_H_
#define TARN_TOOLS_COMMON_PRINTABLE_H_

#include <string>
#include <string_view>

namespace tarn::tools {

// `text` on one line that cannot steer a terminal: its control characters are shown as "\x1b".
std::string Printable(std::string_view text);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_PRINTABLE_H_
