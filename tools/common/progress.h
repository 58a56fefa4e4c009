// How far a long step is, for people: a bar on a terminal, a line in a log.
#ifndef TARN_TOOLS_COMMON_PROGRESS_H_
#define TARN_TOOLS_COMMON_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace tarn::tools {

class Progress {
 public:
  // Nothing is shown before the step has taken long enough to be worth it. `step` is shown as it is.
  Progress(std::FILE* out, bool terminal, std::string step, uint64_t total);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `note` is shown after the bar.
  void Advance(uint64_t count, const std::string& note = "");

 private:
  using Clock = std::chrono::steady_clock;

  void DrawBar(const std::string& note) const;

  std::FILE* const out_;
  const bool terminal_;
  const std::string step_;
  const uint64_t total_;
  uint64_t done_ = 0;
  Clock::time_point next_;
  bool shown_ = false;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_PROGRESS_H_
