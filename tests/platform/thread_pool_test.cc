// Whatever becomes of the workers, every item is done once and the caller comes back.
#include "runtime/platform/thread_pool.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/arith.h"
#include "tests/support/threads.h"

// The binary is linked with --wrap=pthread_create: the threads of a pool, though not those of the C++ library, come from here.
namespace {
int creations_left = -1;  // until they fail; -1: they do not
}

extern "C" int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument) {
  if (creations_left == 0) return EAGAIN;
  if (creations_left > 0) --creations_left;
  return __real_pthread_create(thread, attributes, main, argument);
}

namespace tarn {
namespace {

// The pool may use as many threads as there are processors: on one these tests still hold, with less to them.
void ExpectEachOnce(const ThreadPool& pool, size_t count) {
  std::vector<std::atomic<uint32_t>> times(count);
  std::atomic<bool> known{true};
  pool.ParallelFor(count, UINT64_MAX, [&](size_t index, size_t thread) {
    times[index].fetch_add(1, std::memory_order_relaxed);
    if (thread >= pool.threads()) known = false;
  });
  EXPECT_TRUE(known);
  size_t wrong = 0;
  for (const auto& t : times) wrong += t.load(std::memory_order_relaxed) != 1;
  EXPECT_EQ(wrong, 0u) << count << " items, " << pool.threads() << " threads";
}

// The kernel's numbers of this process's threads whose name begins so.
std::vector<pid_t> ThreadsNamed(const std::string& name) {
  std::vector<pid_t> found;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream file(std::string("/proc/self/task/") + entry->d_name + "/comm");
    std::string line;
    if (std::getline(file, line) && line.compare(0, name.size(), name) == 0) found.push_back(std::stoi(entry->d_name));
  }
  if (folder != nullptr) closedir(folder);
  return found;
}

// Workers name themselves as they start, and are still seen for a moment after they were joined. Waits ten seconds at most.
std::vector<pid_t> Workers(size_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::vector<pid_t> found;
  while ((found = ThreadsNamed("tarn-")).size() != count && std::chrono::steady_clock::now() < end) sched_yield();
  EXPECT_EQ(found.size(), count);
  return found;
}

TEST(ThreadPool, EachItemOnce) {
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    const test::Threads t(threads);
    EXPECT_EQ(t.pool.threads(), threads);
    for (size_t count = 0; count < 300; ++count) ExpectEachOnce(t.pool, count);
    for (const size_t count : {1000u, 4096u, 100003u}) ExpectEachOnce(t.pool, count);
  }
}

TEST(ThreadPool, ManyJobsInARow) {
  const test::Threads t(2);
  std::vector<uint64_t> sums(16);
  for (int job = 0; job < 20000; ++job) {
    t.pool.ParallelFor(sums.size(), UINT64_MAX, [&](size_t index, size_t) { sums[index] += index; });  // plain: items share nothing
  }
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 20000 * i);
}

TEST(ThreadPool, LittleWorkStaysWithTheCaller) {
  const test::Threads t(2);
  EXPECT_EQ(t.pool.For(1000), nullptr);
  EXPECT_EQ(t.pool.For(uint64_t{1} << 30), &t.pool);
  EXPECT_EQ(ThreadPool().For(uint64_t{1} << 30), nullptr);
}

TEST(ThreadPool, PoolsAtOnce) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([] {
      const test::Threads t(2);
      for (size_t job = 0; job < 300; ++job) ExpectEachOnce(t.pool, job % 50);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// ---- workers that do not run ----

std::atomic<bool> held{false};
std::atomic<size_t> holding{0};

// A worker that gets this signal stops where it is, as if its core were taken away, until it is let go.
class Hold {
 public:
  Hold() {
    held = true;
    struct sigaction action {};
    action.sa_handler = [](int) {
      holding.fetch_add(1);
      while (held.load()) usleep(100);
      holding.fetch_sub(1);
    };
    sigaction(SIGSYS, &action, &before_);
  }
  void Stop(const std::vector<pid_t>& workers) {
    for (const pid_t worker : workers) syscall(SYS_tgkill, getpid(), worker, SIGSYS);
    while (holding.load() < workers.size()) sched_yield();
  }
  ~Hold() {
    held = false;
    while (holding.load() != 0) sched_yield();
    sigaction(SIGSYS, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

TEST(ThreadPool, TheCallerDoesNotWaitForWorkersThatDoNotRun) {
  for (const bool asleep : {false, true}) {
    const test::Threads t(4);
    ExpectEachOnce(t.pool, 1000);
    if (asleep) usleep(20000);
    Hold hold;
    hold.Stop(Workers(3));
    for (size_t count = 0; count < 100; ++count) ExpectEachOnce(t.pool, count);
  }
}

// Each worker that has taken an item stays in it until the caller has done all that was left.
TEST(ThreadPool, TheCallerDoesTheShareOfWorkersThatAreLate) {
  const test::Threads t(3);
  for (int job = 0; job < 20; ++job) {
    constexpr size_t kCount = 1000;
    std::atomic<size_t> begun{0};
    std::atomic<size_t> late{0};
    std::vector<std::atomic<uint32_t>> times(kCount);
    t.pool.ParallelFor(kCount, UINT64_MAX, [&](size_t index, size_t thread) {
      times[index].fetch_add(1);
      begun.fetch_add(1);
      // A piece is 21 items at most: what two workers have taken may stay undone until the caller has nothing left to take.
      if (thread != 0 && late.fetch_add(1) < 2) {
        while (begun.load() + 2 * 21 < kCount) sched_yield();
      }
    });
    for (const auto& time : times) ASSERT_EQ(time.load(), 1u);
  }
}

// ---- processors that come and go ----

class Affinity {
 public:
  Affinity() { sched_getaffinity(0, sizeof(before_), &before_); }
  ~Affinity() { Set(before_); }
  // For every thread of the process, as when an app moves to another cpuset.
  static void Set(const cpu_set_t& processors) {
    for (const pid_t thread : ThreadsNamed("")) sched_setaffinity(thread, sizeof(processors), &processors);
  }
  cpu_set_t First() const {
    cpu_set_t first;
    CPU_ZERO(&first);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &before_)) continue;
      CPU_SET(i, &first);
      break;
    }
    return first;
  }
  const cpu_set_t& before() const { return before_; }

 private:
  cpu_set_t before_;
};

// Threads that took an item of one job with many.
size_t ThreadsAtWork(const ThreadPool& pool) {
  std::vector<std::atomic<uint32_t>> items(pool.threads());
  pool.ParallelFor(2000, UINT64_MAX, [&](size_t, size_t thread) {
    items[thread].fetch_add(1);
    if (thread == 0) sched_yield();
  });
  size_t at_work = 0;
  for (const auto& i : items) at_work += i.load() != 0;
  return at_work;
}

TEST(ThreadPool, ProcessorsChangeWhileItRuns) {
  const Affinity affinity;
  const test::Threads t(2);
  Workers(1);
  for (int round = 0; round < 3; ++round) {
    Affinity::Set(affinity.First());
    usleep(15000);  // it looks every 10 ms
    EXPECT_EQ(ThreadsAtWork(t.pool), 1u);
    for (size_t count = 0; count < 50; ++count) ExpectEachOnce(t.pool, count);
    Affinity::Set(affinity.before());
    for (size_t count = 0; count < 50; ++count) ExpectEachOnce(t.pool, count);
    if (CPU_COUNT(&affinity.before()) < 2) continue;
    while (ThreadsAtWork(t.pool) != 2) usleep(1000);  // the worker comes back
  }
}

// ---- threads of the system ----

TEST(ThreadPool, WorkersHaveNamesAndNoSignals) {
  const test::Threads t(3);
  Workers(2);
  EXPECT_EQ(ThreadsNamed("tarn-1").size(), 1u);
  const std::vector<pid_t> second = ThreadsNamed("tarn-2");
  ASSERT_EQ(second.size(), 1u);
  std::ifstream status("/proc/self/task/" + std::to_string(second[0]) + "/status");
  uint64_t blocked = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, 7, "SigBlk:") == 0) blocked = std::stoull(line.substr(8), nullptr, 16);
  }
  const auto is_blocked = [&](int signal) { return (blocked >> (signal - 1) & 1) != 0; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1, SIGCHLD}) EXPECT_TRUE(is_blocked(signal)) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) EXPECT_FALSE(is_blocked(signal)) << signal;
}

TEST(ThreadPool, AThreadThatDoesNotStartIsAnError) {
  constexpr uint32_t kThreads = 5;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const Block block = std::move(Block::Allocate(DefaultAllocator(), ThreadPool::Bytes(kThreads), "threads").value());
  for (int started = 0; started < 4; ++started) {
    creations_left = started;
    const Result<ThreadPool> refused = ThreadPool::Create(kThreads, block.bytes());
    creations_left = -1;
    EXPECT_EQ(refused.status().code(), TARN_OUT_OF_MEMORY);
    const std::string message = refused.status().message();
    EXPECT_NE(message.find("5 threads: " + std::to_string(started + 1) + " of them run"), std::string::npos) << message;
    Workers(0);
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
  EXPECT_TRUE(ThreadPool::Create(kThreads, block.bytes()).ok());
}

TEST(ThreadPool, MemoryThatIsTooSmallIsRefused) {
  const Block block = std::move(Block::Allocate(DefaultAllocator(), ThreadPool::Bytes(3), "threads").value());
  EXPECT_EQ(ThreadPool::Create(4, block.bytes()).status().code(), TARN_INTERNAL);
  EXPECT_EQ(ThreadPool::Bytes(1), 0u);
}

}  // namespace
}  // namespace tarn
