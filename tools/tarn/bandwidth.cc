#include "tools/tarn/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "tools/tarn/clock.h"
#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr double kMeasuredSeconds = 0.2;
constexpr double kTriedSeconds = 0.02;
constexpr int kTries = 2;

// A cache line. The compiler makes of it what the instruction set of the function has.
typedef uint64_t Line __attribute__((vector_size(64)));
constexpr size_t kStreams = 4;
constexpr size_t kPrefetchBytes = 512;

// Four streams, because one prefetcher does not fill a memory channel, and as many sums, because one is a chain.
__attribute__((always_inline)) inline uint64_t ReadAll(const uint8_t* data, size_t size_bytes) {
  const size_t stream = size_bytes / kStreams / sizeof(Line) * sizeof(Line);
  Line a = {}, b = {}, c = {}, d = {};
  const auto add = [](const uint8_t* from, Line& sum) __attribute__((always_inline)) {
    __builtin_prefetch(from + kPrefetchBytes);
    Line line;
    std::memcpy(&line, from, sizeof(line));
    sum ^= line;
  };
  for (const uint8_t* end = data + stream; data != end; data += sizeof(Line)) {
    add(data, a);
    add(data + stream, b);
    add(data + 2 * stream, c);
    add(data + 3 * stream, d);
  }
  a ^= b ^ c ^ d;
  uint64_t sum = 0;
  for (size_t i = 0; i < sizeof(Line) / sizeof(sum); ++i) sum ^= a[i];
  return sum;
}

uint64_t ReadPlain(const uint8_t* data, size_t size_bytes) { return ReadAll(data, size_bytes); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t ReadAvx2(const uint8_t* data, size_t size_bytes) { return ReadAll(data, size_bytes); }
__attribute__((target("avx512f"))) uint64_t ReadAvx512(const uint8_t* data, size_t size_bytes) { return ReadAll(data, size_bytes); }
#endif

std::vector<ReadLoop> Loops() {
  std::vector<ReadLoop> loops = {ReadPlain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) loops.push_back(ReadAvx2);
  if (__builtin_cpu_supports("avx512f")) loops.push_back(ReadAvx512);
#endif
  return loops;
}

std::atomic<uint64_t> g_sink;  // what was read was wanted

}  // namespace

Buffer::Buffer(uint64_t size_bytes, Pages pages)
    : size_bytes_(size_bytes), mapped_bytes_((size_bytes + kHugePage - 1) / kHugePage * kHugePage) {
  data_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    throw Failure("bench: no memory for a buffer of " + FormatBytes(size_bytes) + " to measure the read bandwidth with");
  }
#if defined(MADV_HUGEPAGE)
  madvise(data_, mapped_bytes_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
  uint64_t value = 1;
  for (uint64_t *at = static_cast<uint64_t*>(data_), *end = at + mapped_bytes_ / sizeof(value); at != end; ++at) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    *at = value;
  }
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

ReadBandwidth::ReadBandwidth(uint64_t size_bytes, uint32_t threads) : threads_(threads) {
  double best = 0;
  Buffer::Pages best_pages = Buffer::Pages::kSmall;
  // One buffer at a time: two may be more memory than there is.
  for (const Buffer::Pages pages : {Buffer::Pages::kSmall, Buffer::Pages::kHuge}) {
    buffer_ = Buffer();
    buffer_ = Buffer(size_bytes, pages);
    for (int round = 0; round < kTries; ++round) {
      for (const ReadLoop loop : Loops()) {
        double rate = Rate(loop, 1);
        const auto passes = static_cast<uint64_t>(kTriedSeconds * rate / static_cast<double>(size_bytes));
        if (passes > 1) rate = Rate(loop, passes);
        if (rate <= best) continue;
        best = rate;
        best_pages = pages;
        loop_ = loop;
      }
    }
  }
  if (best_pages == Buffer::Pages::kSmall) {
    buffer_ = Buffer();
    buffer_ = Buffer(size_bytes, best_pages);
  }
  passes_ = static_cast<uint64_t>(kMeasuredSeconds * best / static_cast<double>(size_bytes)) + 1;
}

double ReadBandwidth::Measure() const { return Rate(loop_, passes_); }

double ReadBandwidth::Rate(ReadLoop loop, uint64_t passes) const {
  const size_t part = static_cast<size_t>(buffer_.size_bytes() / threads_);
  const auto read = [&](uint32_t thread) {
    for (uint64_t pass = 0; pass < passes; ++pass) g_sink = loop(buffer_.data() + thread * part, part);
  };
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> others;
  others.reserve(threads_ - 1);
  bool all_started = true;
  try {
    for (uint32_t i = 1; i < threads_; ++i) others.emplace_back(read, i);
    read(0);
  } catch (const std::exception&) {  // those that run must end before they go
    all_started = false;
  }
  for (std::thread& other : others) other.join();
  if (!all_started) throw Failure(Format("bench: cannot start %u threads", threads_));
  const double seconds = SecondsSince(start);
  return static_cast<double>(part) * threads_ * static_cast<double>(passes) / seconds;
}

}  // namespace tarn_cli
