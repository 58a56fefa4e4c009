#include "runtime/platform/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>

#include "core/arith.h"
#include "runtime/platform/active_threads.h"
#include "runtime/platform/clock.h"
#include "runtime/platform/futex.h"

namespace tarn {
namespace {

// As much as Bionic's own: the deepest frame of a kernel has 20 KB, but the stack also holds the program's thread-local variables.
constexpr size_t kStackBytes = size_t{1} << 20;

// So many pieces of a job for each thread: few enough that taking one costs nothing beside the work in it, and enough that the
// last one to be done is not long waited for.
constexpr size_t kPiecesPerThread = 16;

// How long a worker looks for the next job before it sleeps. Waking it takes as long as a small job; between two jobs of one token
// lie some microseconds, between two tokens perhaps a tenth of a millisecond.
constexpr uint64_t kIdleNs = 500'000;

// How long a worker takes pieces before it offers its core to who else wants it: less than a time slice of the scheduler, so that
// the core is taken from it between two pieces and not in the middle of one, which the caller would have to wait for.
constexpr uint64_t kTurnNs = 700'000;

// How long the caller looks whether the others are done before it sleeps, at least: longer than waking takes.
constexpr uint64_t kLeastWaitNs = 50'000;

constexpr uint64_t kBetweenAffinityNs = 10'000'000;

// A moment's rest in a loop that waits, some tens of nanoseconds.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
  __asm__ volatile("yield");
#endif
}

uint64_t CpuNs(clockid_t clock) {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec)
                                          : 0;
}

struct alignas(kAlignment) Worker {
  std::atomic<uint32_t> asleep{0};    // a futex
  std::atomic<uint32_t> holds{0};     // pieces, so that the caller has to wait for it
  std::atomic<int32_t> system_id{0};  // 0 (for the kernel: whoever asks) until it has started
  uint32_t number = 0;                // 1 and up; 0 is the caller
  pthread_t thread{};
  clockid_t clock{};
  uint64_t turn_ns = 0;  // when it was last given its core
  uint64_t cpu_ns = 0;   // as the caller's wait began
  void* pool = nullptr;
};

}  // namespace

// What the threads of a pool share.
//
// A job is cut into pieces. `untaken` is the range of those that nobody has: the caller takes from its front, workers from its
// back, by one compare-and-swap. Who has taken a piece of a job holds the job open: only then does it read the rest of the job's
// description, which the caller changes after all that was taken is finished. So it does not matter how late a worker comes.
struct ThreadPool::Workers {
  explicit Workers(uint32_t threads) : active(threads) {}

  // ---- the job ----
  Task task = nullptr;
  void* context = nullptr;
  size_t count = 0;
  size_t piece = 1;  // items in one
  size_t piece_count = 0;
  size_t callers = 0;                                     // pieces of the caller, if all threads are as fast
  alignas(kAlignment) std::atomic<uint64_t> untaken{0};   // first | end << 32
  alignas(kAlignment) std::atomic<uint32_t> finished{0};  // pieces, by workers; a futex. kCallerSleeps
  static constexpr uint32_t kCallerSleeps = uint32_t{1} << 31;

  // ---- the workers ----
  alignas(kAlignment) std::atomic<uint32_t> active_count{0};  // threads that may take pieces
  std::atomic<bool> stop{false};
  ActiveThreads active;  // the caller's own
  uint64_t next_affinity_ns = 0;
  Span<Worker> table;

  static bool HasWork(uint64_t range) { return static_cast<uint32_t>(range) < static_cast<uint32_t>(range >> 32); }

  bool Take(bool front, size_t* taken) {
    uint64_t range = untaken.load(std::memory_order_relaxed);
    while (HasWork(range)) {
      const uint64_t left = front ? range + 1 : range - (uint64_t{1} << 32);
      if (!untaken.compare_exchange_weak(range, left, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      *taken = static_cast<size_t>(front ? static_cast<uint32_t>(range) : (range >> 32) - 1);
      return true;
    }
    return false;
  }

  // Pieces behind the caller's share lie in the opposite order of that in which they are taken. So caller and worker both work
  // upwards within their share, and what a kernel prefetches behind an item is what the same thread, if it is the only worker,
  // needs next.
  void Do(size_t taken, size_t thread) const {
    const size_t at = taken < callers ? taken : callers + (piece_count - 1 - taken);
    const size_t begin = at * piece, end = std::min(count, begin + piece);
    for (size_t i = begin; i < end; ++i) task(context, thread, i);
  }

  // ---- a worker ----

  bool MayTake(const Worker& worker) const {
    return worker.number < active_count.load(std::memory_order_relaxed) && HasWork(untaken.load(std::memory_order_seq_cst));
  }

  // Looks for work for a while, at no other thread's expense: who wants this core gets it.
  void WaitForWork(Worker& worker) const {
    const uint64_t begin = MonotonicNs();
    while (worker.number < active_count.load(std::memory_order_relaxed) && MonotonicNs() - begin < kIdleNs) {
      for (int i = 0; i < 64; ++i) {
        if (MayTake(worker) || stop.load(std::memory_order_relaxed)) return;
        Pause();
      }
      Yield(worker);
    }
    worker.asleep.store(1, std::memory_order_seq_cst);
    if (MayTake(worker) || stop.load(std::memory_order_seq_cst)) worker.asleep.store(0, std::memory_order_relaxed);
    while (worker.asleep.load(std::memory_order_acquire) != 0) FutexWait(&worker.asleep, 1);
    worker.turn_ns = MonotonicNs();
  }

  // Takes pieces while there are some and its turn lasts.
  void Work(Worker& worker) {
    uint32_t done = 0;
    bool turn_is_over = false;
    worker.holds.store(1, std::memory_order_relaxed);
    for (size_t taken; !turn_is_over && MayTake(worker) && Take(/*front=*/false, &taken); ++done) {
      Do(taken, worker.number);
      turn_is_over = MonotonicNs() - worker.turn_ns > kTurnNs;
    }
    worker.holds.store(0, std::memory_order_relaxed);
    if (done == 0) return;
    if ((finished.fetch_add(done, std::memory_order_acq_rel) & kCallerSleeps) != 0) FutexWake(&finished);
    if (turn_is_over) Yield(worker);
  }

  static void Yield(Worker& worker) {
    sched_yield();
    worker.turn_ns = MonotonicNs();
  }

  static void* Main(void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    Workers& pool = *static_cast<Workers*>(worker.pool);
    char name[16];
    std::snprintf(name, sizeof(name), "tarn-%u", worker.number);
    prctl(PR_SET_NAME, name);
    worker.system_id.store(static_cast<int32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
    while (!pool.stop.load(std::memory_order_acquire)) {
      pool.WaitForWork(worker);
      pool.Work(worker);
    }
    return nullptr;
  }

  // ---- the caller ----

  static void Wake(Worker& worker) {
    if (worker.asleep.load(std::memory_order_seq_cst) == 0) return;
    worker.asleep.store(0, std::memory_order_release);
    FutexWake(&worker.asleep);
  }

  // Processors that the caller or a worker may run on; the workers began with the same ones.
  uint32_t Processors() const {
    cpu_set_t mine[8] = {}, theirs[8] = {};  // 8,192 processors
    const pid_t worker = table[0].system_id.load(std::memory_order_relaxed);
    if (sched_getaffinity(0, sizeof(mine), mine) != 0) return UINT32_MAX;
    if (sched_getaffinity(worker, sizeof(theirs), theirs) == 0) CPU_OR_S(sizeof(mine), mine, mine, theirs);
    return static_cast<uint32_t>(CPU_COUNT_S(sizeof(mine), mine));
  }

  uint32_t Active(uint64_t now) {
    if (now >= next_affinity_ns) {
      active.SetProcessors(Processors());
      next_affinity_ns = now + kBetweenAffinityNs;
    }
    active.Update(now);
    return active.count();
  }

  // Until workers have finished so many pieces. `patience_ns`: what one piece may take.
  void WaitForWorkers(uint32_t pieces, uint64_t patience_ns) {
    const uint64_t begin = MonotonicNs();
    do {
      for (int i = 0; i < 64; ++i) {
        if (finished.load(std::memory_order_acquire) == pieces) return;
        Pause();
      }
    } while (MonotonicNs() - begin < patience_ns);

    // Somebody is late. Asleep, so that it may have this core; then see whether it was at work or had to wait for a core.
    const uint64_t asleep_ns = MonotonicNs();
    for (Worker& worker : table) {
      worker.cpu_ns = worker.holds.load(std::memory_order_relaxed) != 0 ? CpuNs(worker.clock) : 0;
    }
    uint32_t found = finished.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
    while (found != (pieces | kCallerSleeps)) {
      FutexWait(&finished, found);
      found = finished.load(std::memory_order_acquire);
    }
    const uint64_t now = MonotonicNs(), waited = now - asleep_ns;
    uint64_t lost = 0;
    uint32_t late = 0;
    for (const Worker& worker : table) {
      if (worker.cpu_ns == 0) continue;
      const uint64_t worked = CpuNs(worker.clock) - worker.cpu_ns;
      if (worked >= waited / 2) continue;
      lost = std::max(lost, waited - worked);
      ++late;
    }
    if (late != 0) active.Lost(now, lost, late);
  }
};

uint64_t ThreadPool::Bytes(uint32_t threads) {
  return threads <= 1 ? 0 : AlignUp(sizeof(Workers)) + AlignUp(uint64_t{threads - 1} * sizeof(Worker));
}

ThreadPool::~ThreadPool() {
  if (workers_ == nullptr) return;
  workers_->stop.store(true, std::memory_order_seq_cst);
  for (Worker& worker : workers_->table) Workers::Wake(worker);
  for (Worker& worker : workers_->table) pthread_join(worker.thread, nullptr);
}

namespace {

// Signals that come from outside are for the program's own threads; those of a fault are for whom they happen to.
void BlockSignals(sigset_t* before) {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, before);
}

int Start(Worker* worker, void* (*main)(void*)) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  error = pthread_attr_setstacksize(&attributes, kStackBytes);
  if (error == 0) error = pthread_create(&worker->thread, &attributes, main, worker);
  pthread_attr_destroy(&attributes);
  if (error == 0 && pthread_getcpuclockid(worker->thread, &worker->clock) != 0) worker->clock = CLOCK_MONOTONIC;
  return error;
}

}  // namespace

Result<ThreadPool> ThreadPool::Create(uint32_t threads, Span<uint8_t> memory) {
  ThreadPool pool;
  if (threads <= 1) return pool;
  const uint64_t header = AlignUp(sizeof(Workers));
  if (memory.size() < Bytes(threads)) {
    return Error(TARN_INTERNAL, "%zu bytes for %u threads, expected %llu", memory.size(), threads,
                 static_cast<unsigned long long>(Bytes(threads)));
  }
  Workers* workers = new (memory.data()) Workers(threads);
  Worker* table = reinterpret_cast<Worker*>(memory.data() + header);
  pool.workers_ = workers;
  pool.threads_ = threads;
  sigset_t signals;
  BlockSignals(&signals);
  int error = 0;
  for (uint32_t i = 0; i + 1 < threads && error == 0; ++i) {
    Worker* worker = new (&table[i]) Worker();
    worker->number = i + 1;
    worker->pool = workers;
    error = Start(worker, Workers::Main);
    if (error == 0) workers->table = {table, i + 1};
  }
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  if (error == 0) return pool;
  return Error(TARN_OUT_OF_MEMORY, "cannot start %u threads: %zu of them run, then pthread_create failed (error %d): ask for fewer",
               threads, workers->table.size() + 1, error);
}

void ThreadPool::Run(size_t count, void* context, Task task) const {
  const uint64_t begin = workers_ == nullptr || count <= 1 ? 0 : MonotonicNs();
  const uint32_t active = begin == 0 ? 1 : workers_->Active(begin);
  if (active == 1) {
    for (size_t i = 0; i < count; ++i) task(context, 0, i);
    return;
  }
  Workers& workers = *workers_;
  workers.task = task;
  workers.context = context;
  workers.count = count;
  workers.piece = (count - 1) / (size_t{active} * kPiecesPerThread) + 1;
  const uint32_t pieces = static_cast<uint32_t>((count - 1) / workers.piece + 1);
  workers.piece_count = pieces;
  workers.callers = (pieces + active - 1) / active;
  workers.finished.store(0, std::memory_order_relaxed);
  workers.active_count.store(active, std::memory_order_relaxed);
  workers.untaken.store(uint64_t{pieces} << 32, std::memory_order_seq_cst);
  const uint32_t wanted = std::min(active, pieces) - 1;
  for (uint32_t i = 0; i < wanted; ++i) Workers::Wake(workers.table[i]);

  uint32_t done = 0;
  for (size_t taken; workers.Take(/*front=*/true, &taken); ++done) workers.Do(taken, 0);
  if (done == pieces) return;
  // Twice what a piece takes here: the last one may be as long, and this core the faster.
  const uint64_t piece_ns = (MonotonicNs() - begin) / (done + 1);
  workers.WaitForWorkers(pieces - done, std::max(2 * piece_ns, kLeastWaitNs));
}

}  // namespace tarn
