// A request to stop, which another thread or a signal handler makes and a long call looks at now and then.
#ifndef TARN_CORE_CANCELLATION_H_
#define TARN_CORE_CANCELLATION_H_

#include <atomic>

namespace tarn {

// Stays until it is withdrawn, so that one between two calls is not lost. During a call it is never withdrawn: a thread that was
// joined and saw it leaves it visible to the one that joined it.
class Cancellation {
 public:
  void Request() { requested_.store(1, std::memory_order_relaxed); }
  void Withdraw() { requested_.store(0, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed) != 0; }

 private:
  static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler takes no lock");
  std::atomic<unsigned> requested_{0};
};

}  // namespace tarn

#endif  // TARN_CORE_CANCELLATION_H_
