#include "tools/common/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdarg>
#include <utility>

namespace tarn::tools {
namespace {

constexpr std::chrono::milliseconds kShownAfter(300), kShownEvery(100);
constexpr size_t kBarWidth = 12;
constexpr size_t kUsualColumns = 80;

size_t Columns(std::FILE* terminal) {
  struct winsize window = {};
  return ioctl(fileno(terminal), TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : kUsualColumns;
}

// The bytes of the first `columns` characters of UTF-8: a line that wraps could not be drawn over.
size_t BytesOf(std::string_view text, size_t columns) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && columns-- == 0) return i;
  }
  return text.size();
}

}  // namespace

Progress::Progress(std::FILE* out, bool terminal, std::string step, uint64_t total, std::string unit)
    : out_(out),
      terminal_(terminal),
      step_(std::move(step)),
      total_(total == 0 ? 1 : total),
      unit_(std::move(unit)),
      start_(Clock::now()),
      next_(start_ + kShownAfter) {}

Progress::~Progress() {
  if (shown_) std::fprintf(out_, "\r\033[K");
}

void Progress::Advance(uint64_t count, std::string_view note) {
  done_ = std::min(done_ + count, total_);
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + kShownEvery;
  shown_ = true;
  Show(note);
}

void Progress::Show(std::string_view note) {
  size_ = 0;
  Append("%.200s [", step_.c_str());
  const auto filled = static_cast<size_t>(kBarWidth * done_ / total_);
  for (size_t i = 0; i < kBarWidth; ++i) Append("%c", i < filled ? '#' : '.');
  Append("] %3d %%", static_cast<int>(100 * done_ / total_));
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (done_ > 0) AppendTimeLeft(seconds * static_cast<double>(total_ - done_) / static_cast<double>(done_));
  if (!note.empty()) Append("  %.*s", static_cast<int>(note.size()), note.data());
  if (!unit_.empty()) {
    Append("  %llu/%llu %s, %.*f/s", static_cast<unsigned long long>(done_), static_cast<unsigned long long>(total_), unit_.c_str(),
           static_cast<double>(done_) < 10 * seconds ? 1 : 0, static_cast<double>(done_) / seconds);
  }
  const size_t shown = BytesOf({line_, size_}, Columns(out_) - 1);
  std::fprintf(out_, "\r%.*s\033[K", static_cast<int>(shown), line_);
  std::fflush(out_);
}

void Progress::Append(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = std::vsnprintf(line_ + size_, sizeof(line_) - size_, format, arguments);
  va_end(arguments);
  size_ = std::min(size_ + static_cast<size_t>(std::max(size, 0)), sizeof(line_) - 1);
}

void Progress::AppendTimeLeft(double seconds) {
  const auto left = static_cast<unsigned long long>(seconds + 0.5);
  if (left < 60) {
    Append("  %llu s left", left);
  } else if (left < 3600) {
    Append("  %llu min %llu s left", left / 60, left % 60);
  } else {
    Append("  %llu h %llu min left", left / 3600, left / 60 % 60);
  }
}

}  // namespace tarn::tools
