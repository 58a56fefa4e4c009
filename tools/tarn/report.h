// How numbers are shown: memory by class, sizes, tables.
#ifndef TARN_TOOLS_TARN_REPORT_H_
#define TARN_TOOLS_TARN_REPORT_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/tarn/json.h"

namespace tarn_cli {

// printf into a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// "812 B", "3.4 MiB".
std::string FormatBytes(uint64_t bytes);
// Bytes as hexadecimal digits.
template <size_t kBytes>
std::string HexText(const uint8_t (&bytes)[kBytes]) {
  std::string text;
  for (const uint8_t byte : bytes) text += Format("%02x", byte);
  return text;
}

// Rows of cells, two spaces between columns. Columns of `align` that are 'r' are right-aligned. Names come from
// files: control characters of a cell are shown as "\x1b".
class Table {
 public:
  explicit Table(std::string align) : align_(std::move(align)) {}
  void Add(std::vector<std::string> cells);
  std::string Text(const std::string& indent = "") const;

 private:
  std::string align_;
  std::vector<std::vector<std::string>> rows_;
};

// The memory contract, by class.
std::string MemoryText(const tarn_memory& memory);
Json MemoryJson(const tarn_memory& memory);

// What people mean by a number that is kept as a float: 0.6, not 0.60000002384185791.
double ShortestDouble(float value);

// One object and a newline.
inline std::string JsonText(const Json& json) { return json.Dump(2) + "\n"; }
// The same on one line.
inline std::string JsonLine(const Json& json) { return json.Dump() + "\n"; }

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_REPORT_H_
