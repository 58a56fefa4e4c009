// How many threads of a pool are of use at the moment.
//
// Another program on a core costs a pool more than that core: the caller waits for a worker that holds work and does not run, which
// takes a time slice of the scheduler, milliseconds where the work takes microseconds. So the time that is lost this way is
// counted. Where it comes to more than a small share the pool goes on with fewer threads, and tries one more from time to time.
//
// Numbers in, numbers out: no clock and no system call, so that tests need none.
#ifndef TARN_RUNTIME_PLATFORM_ACTIVE_THREADS_H_
#define TARN_RUNTIME_PLATFORM_ACTIVE_THREADS_H_

#include <algorithm>
#include <cstdint>

namespace tarn {

class ActiveThreads {
 public:
  explicit ActiveThreads(uint32_t most) : most_(most), allowed_(most), count_(most) {}

  // The caller's thread included: 1 to `most`.
  uint32_t count() const { return count_; }

  // The processors that the pool's threads may run on.
  void SetProcessors(uint32_t processors) {
    allowed_ = std::clamp(processors, uint32_t{1}, most_);
    count_ = std::min(count_, allowed_);
  }

  // Before a job: tries one thread more if the time for it has come.
  void Update(uint64_t now_ns) {
    if (count_ == allowed_ || now_ns < next_trial_ns_) return;
    ++count_;
    allowance_ns_ = kTrialAllowanceNs;
    allowance_at_ns_ = trial_ns_ = now_ns;
    next_trial_ns_ = now_ns + kBetweenTrialsNs;
  }

  // The caller waited for `late` workers that did not run, and lost this time.
  void Lost(uint64_t now_ns, uint64_t lost_ns, uint32_t late) {
    allowance_ns_ = std::min(allowance_ns_ + (now_ns - allowance_at_ns_) / kToleratedPart, kMostAllowanceNs);
    allowance_at_ns_ = now_ns;
    if (lost_ns <= allowance_ns_ || count_ == 1) {
      allowance_ns_ -= std::min(lost_ns, allowance_ns_);
      return;
    }
    count_ -= std::min(late, count_ - 1);
    // Where it went well for long, it may soon do so again. A trial that fails doubles the wait for the next one.
    const bool trial_failed = now_ns - trial_ns_ < wait_ns_;
    wait_ns_ = trial_failed ? std::min(std::max(2 * wait_ns_, kTrialPart * lost_ns), kLongestWaitNs) : kBetweenTrialsNs;
    next_trial_ns_ = now_ns + wait_ns_;
    allowance_ns_ = 0;
  }

 private:
  // A sixteenth of the time may be lost; what was not is saved, up to two time slices. Going on with fewer threads because of a
  // short task now and then would cost more than waiting for it.
  static constexpr uint64_t kToleratedPart = 16;
  static constexpr uint64_t kMostAllowanceNs = 8'000'000;
  // A trial may lose less than a time slice.
  static constexpr uint64_t kTrialAllowanceNs = 1'000'000;
  // What a failed trial loses is at most a thirty-second part of the time to the next one, unless that were more than two seconds.
  static constexpr uint64_t kTrialPart = 32;
  static constexpr uint64_t kLongestWaitNs = 2'000'000'000;
  // Some time slices: a trial that lasts as long has not met another program on its core.
  static constexpr uint64_t kBetweenTrialsNs = 20'000'000;

  uint32_t most_;
  uint32_t allowed_;
  uint32_t count_;
  uint64_t allowance_ns_ = kMostAllowanceNs;  // what may be lost, as of allowance_at_ns_
  uint64_t allowance_at_ns_ = 0;
  uint64_t trial_ns_ = 0;  // when a thread was last added
  uint64_t next_trial_ns_ = 0;
  uint64_t wait_ns_ = 0;  // before that trial
};

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_ACTIVE_THREADS_H_
