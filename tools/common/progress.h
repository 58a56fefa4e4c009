// How far a long step is, for people: a bar on a terminal, nothing elsewhere.
#ifndef TARN_TOOLS_COMMON_PROGRESS_H_
#define TARN_TOOLS_COMMON_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tarn::tools {

class Progress {
 public:
  // Nothing is shown before the step has taken long enough to be worth it. `step` is shown as it is. With `unit` ("tokens") the
  // numbers are shown too, and how many a second.
  Progress(std::FILE* out, bool terminal, std::string step, uint64_t total, std::string unit = "");
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `note` is shown before the numbers, which a narrow terminal cuts. Allocates nothing.
  void Advance(uint64_t count, std::string_view note = {});

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostBytes = 512;  // of a line

  void Show(std::string_view note);
  void Append(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void AppendTimeLeft(double seconds);

  std::FILE* const out_;
  const bool terminal_;
  const std::string step_;
  const uint64_t total_;
  const std::string unit_;
  const Clock::time_point start_;
  uint64_t done_ = 0;
  Clock::time_point next_;
  bool shown_ = false;
  char line_[kMostBytes];
  size_t size_ = 0;  // of line_
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_PROGRESS_H_
