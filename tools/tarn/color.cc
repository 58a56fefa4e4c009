#include "tools/tarn/color.h"

#include <unistd.h>

#include "tools/tarn/environment.h"

namespace tarn_cli {

bool UseColor(std::FILE* file) {
  return isatty(fileno(file)) == 1 && Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
}

}  // namespace tarn_cli
