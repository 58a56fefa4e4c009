#include "tools/convert/calibrate/workers.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tarn::convert {
namespace {

class Pieces {
 public:
  Pieces(size_t count, const std::function<void(size_t)>& piece) : count_(count), piece_(piece) {}

  // Takes pieces until none are left.
  void Work(const std::function<void(size_t)>& done) {
    try {
      for (size_t i = next_++; i < count_; i = next_++) {
        piece_(i);
        ++finished_;
        if (!done) continue;
        const size_t finished = finished_;
        done(finished - reported_);
        reported_ = finished;
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = count_;
    }
  }

  void Finish(const std::function<void(size_t)>& done) {
    if (failure_) std::rethrow_exception(failure_);
    if (done) done(count_ - reported_);
  }

 private:
  const size_t count_;
  const std::function<void(size_t)>& piece_;
  std::atomic<size_t> next_{0}, finished_{0};
  size_t reported_ = 0;  // of the caller's thread
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void RunPieces(size_t count, uint32_t threads, const std::function<void(size_t)>& piece, const std::function<void(size_t)>& done) {
  Pieces pieces(count, piece);
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads && others.size() + 1 < count) others.emplace_back([&pieces] { pieces.Work(nullptr); });
  } catch (const std::exception&) {  // no more threads or memory are to be had: those that there are do the work
  }
  pieces.Work(done);
  for (std::thread& other : others) other.join();
  pieces.Finish(done);
}

}  // namespace tarn::convert
