#include "tests/kernels/kernel_testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tarn::testing {
namespace {

constexpr uint8_t kPattern = 0xA5;

size_t PageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

PageBuffer::PageBuffer(size_t size_bytes, size_t element_bytes, Place place) : size_bytes_(size_bytes) {
  const size_t behind = place == Place::kShifted ? element_bytes : 0;
  const size_t page = PageBytes();
  const size_t writable = (size_bytes + behind + page - 1) / page * page;
  pages_bytes_ = writable + page;
  pages_ = static_cast<uint8_t*>(mmap(nullptr, pages_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (pages_ == MAP_FAILED) std::abort();
  std::memset(pages_, kPattern, writable);
  if (mprotect(pages_ + writable, page, PROT_NONE) != 0) std::abort();
  data_ = pages_ + writable - behind - size_bytes;
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : pages_(other.pages_), pages_bytes_(other.pages_bytes_), data_(other.data_), size_bytes_(other.size_bytes_) {
  other.pages_ = nullptr;
}

PageBuffer::~PageBuffer() {
  if (pages_ == nullptr) return;
  size_t spoiled = 0;
  for (const uint8_t* p = pages_; p < data_; ++p) spoiled += *p != kPattern;
  for (const uint8_t* p = data_ + size_bytes_; p < pages_ + pages_bytes_ - PageBytes(); ++p) spoiled += *p != kPattern;
  EXPECT_EQ(spoiled, 0u) << "bytes were written outside of a buffer of " << size_bytes_;
  munmap(pages_, pages_bytes_);
}

float Random::Uniform(float low, float high) {
  const float unit = static_cast<float>(engine_() >> 8) * 0x1p-24f;  // std::uniform_real_distribution differs between libraries
  return low + (high - low) * unit;
}

Floats Random::Uniform(size_t size, float low, float high) {
  Floats values(size);
  for (float& value : values) value = Uniform(low, high);
  return values;
}

size_t StridedSize(size_t rows, size_t n, size_t stride) { return (rows - 1) * stride + n; }

Floats Strided(const Floats& rows, size_t n, size_t stride) {
  const size_t count = rows.size() / n;
  Floats strided(StridedSize(count, n, stride), std::nanf(""));
  for (size_t r = 0; r < count; ++r) std::memcpy(&strided[r * stride], &rows[r * n], n * sizeof(float));
  return strided;
}

Floats Unstrided(const Floats& strided, size_t n, size_t stride) {
  Floats rows;
  size_t spoiled = 0;
  for (size_t i = 0; i < strided.size(); ++i) {
    if (i % stride < n) {
      rows.push_back(strided[i]);
    } else {
      spoiled += !std::isnan(strided[i]);
    }
  }
  EXPECT_EQ(spoiled, 0u) << "elements between rows were written";
  return rows;
}

Floats Abs(Floats x) {
  for (float& value : x) value = std::fabs(value);
  return x;
}

void ExpectNear(const char* what, const Floats& expected, const Floats& actual, const std::function<double(size_t)>& bound) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  size_t worst = expected.size();
  double worst_excess = 1.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i], a = actual[i];
    if (e == a) continue;
    double excess = std::fabs(a - e) / (bound(i) + kFlushed);
    if (!std::isfinite(a) || !std::isfinite(e) || std::isnan(excess)) excess = HUGE_VAL;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (worst < expected.size()) {
    ADD_FAILURE() << what << "[" << worst << "] of " << expected.size() << " is " << actual[worst] << ", expected "
                  << expected[worst] << " within " << bound(worst) << ": " << worst_excess << " times the bound";
  }
}

void ExpectEqual(const char* what, const Floats& expected, const Floats& actual) {
  ExpectNear(what, expected, actual, [](size_t) { return 0.0; });
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (size_t n = 1; n <= 35; ++n) sizes.push_back(n);
  for (const size_t n : {63, 64, 100, 128}) sizes.push_back(n);
  return sizes;
}

void ForEachTable(const std::function<void(const Kernels&)>& f) {
  for (const char* name : KernelNames()) {
    SCOPED_TRACE(name);
    const Kernels* kernels = SelectKernels(name);
    ASSERT_NE(kernels, nullptr);
    f(*kernels);
  }
}

}  // namespace tarn::testing
