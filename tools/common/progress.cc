#include "tools/common/progress.h"

#include <cstddef>
#include <utility>

namespace tarn::tools {
namespace {

constexpr std::chrono::milliseconds kBarAfter(300), kBarEvery(100), kLineAfter(2000), kLineEvery(10000);
constexpr size_t kBarWidth = 30;

}  // namespace

Progress::Progress(std::FILE* out, bool terminal, std::string step, uint64_t total)
    : out_(out),
      terminal_(terminal),
      step_(std::move(step)),
      total_(total == 0 ? 1 : total),
      next_(Clock::now() + (terminal ? kBarAfter : kLineAfter)) {}

Progress::~Progress() {
  if (terminal_ && shown_) std::fprintf(out_, "\r\033[K");
}

void Progress::Advance(uint64_t count, const std::string& note) {
  done_ += count;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kBarEvery : kLineEvery);
  shown_ = true;
  if (terminal_) {
    DrawBar(note);
  } else {
    std::fprintf(out_, "%s: %d %%%s%s\n", step_.c_str(), static_cast<int>(100 * done_ / total_), note.empty() ? "" : "  ",
                 note.c_str());
  }
}

void Progress::DrawBar(const std::string& note) const {
  const size_t filled = kBarWidth * done_ / total_;
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(out_, "\r%s [%s] %3d %%  %s\033[K", step_.c_str(), bar.c_str(), static_cast<int>(100 * done_ / total_),
               note.c_str());
  std::fflush(out_);
}

}  // namespace tarn::tools
