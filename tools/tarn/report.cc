#include "tools/tarn/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tools/common/printable.h"

namespace tarn_cli {
namespace {

// Every class of tarn_memory, once: its key in JSON, its words in tables.
struct MemoryClass {
  const char* key;
  const char* label;
  const char* where;
  uint64_t tarn_memory::*bytes;
};
constexpr MemoryClass kMemoryClasses[] = {
    {"mapped_bytes", "model file", "file-backed", &tarn_memory::mapped_bytes},
    {"in_place_bytes", "  dense, in place", "of the model file", &tarn_memory::in_place_bytes},
    {"packed_file_bytes", "packed weights", "file-backed", &tarn_memory::packed_file_bytes},
    {"packed_anonymous_bytes", "packed weights", "anonymous", &tarn_memory::packed_anonymous_bytes},
    {"model_bytes", "model object", "anonymous", &tarn_memory::model_bytes},
    {"session_bytes", "session", "anonymous", &tarn_memory::session_bytes},
    {"state_bytes", "  state", "of the session", &tarn_memory::state_bytes},
    {"arena_bytes", "  arena", "of the session", &tarn_memory::arena_bytes},
    {"scratch_bytes", "  scratch", "of the session", &tarn_memory::scratch_bytes},
    {"program_bytes", "  program", "of the session", &tarn_memory::program_bytes},
};

}  // namespace

std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(static_cast<size_t>(std::max(size, 0)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 would be shown as 1024.0.
  for (; value >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return Format(unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
}

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = tarn::tools::Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text(const std::string& indent) const {
  std::vector<size_t> widths(align_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += align_[i] == 'r' ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string MemoryText(const tarn_memory& memory) {
  Table table("lrrl");
  for (const MemoryClass& item : kMemoryClasses) {
    const uint64_t bytes = memory.*item.bytes;
    table.Add({item.label, FormatBytes(bytes), Format("%llu B", static_cast<unsigned long long>(bytes)), item.where});
  }
  return table.Text("  ");
}

Json MemoryJson(const tarn_memory& memory) {
  Json json = Json::Object();
  for (const MemoryClass& item : kMemoryClasses) json.Add(item.key, memory.*item.bytes);
  return json;
}

double ShortestDouble(float value) {
  char text[32];
  for (int digits = 1;; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, double{value});
    if (digits == std::numeric_limits<float>::max_digits10 || std::strtof(text, nullptr) == value)
      return std::strtod(text, nullptr);
  }
}

}  // namespace tarn_cli
