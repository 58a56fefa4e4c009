// What the kernels' tests share: memory that notices a stray access, reproducible numbers, and comparison against derived bounds.
//
// Bounds. u = 2^-24 is the largest relative error of one f32 rounding. A sum of K products, in any order, with or without fused
// multiply-adds, is off by at most K*u*sum|a_i b_i| (+ O(u^2)); the oracle sums in f64 and rounds once, which adds u*|result|.
// Every tolerance below is built from these two facts, the number of roundings that the kernel's equation needs, and 2u for an
// elementary function of Highway (it states 1 ulp). Nothing is fitted to what a kernel happens to do.
#ifndef TARN_TESTS_KERNELS_KERNEL_TESTING_H_
#define TARN_TESTS_KERNELS_KERNEL_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace tarn::testing {

constexpr double kU = 0x1p-24;

// What a result below the normal range may be off by: two steps of the smallest f32. The vectors of 32-bit ARM know no denormals,
// and make them 0, results (kFlushed) and terms of results alike.
#if defined(__arm__)
constexpr double kTiny = 0x1p-126, kFlushed = kTiny;
#else
constexpr double kTiny = 0x1p-148, kFlushed = 0.0;
#endif

// Where the elements of a Buffer lie.
enum class Place {
  kEnd,      // the last one ends where an unreadable page begins
  kShifted,  // one element before that, so that vectors are misaligned where kEnd aligns them
};

// Pages of its own, an unreadable one behind them, a known pattern before and after the elements.
class PageBuffer {
 public:
  PageBuffer(size_t size_bytes, size_t element_bytes, Place place);
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;
  PageBuffer& operator=(PageBuffer&&) = delete;
  ~PageBuffer();  // fails the test where the pattern was written over

  void* data() const { return data_; }

 private:
  uint8_t* pages_;
  size_t pages_bytes_;
  uint8_t* data_;
  size_t size_bytes_;
};

// `size` elements, copied from a vector or made of NaN (all ones).
template <typename T>
class Buffer {
 public:
  Buffer(size_t size, Place place) : pages_(size * sizeof(T), sizeof(T), place), size_(size) {
    uint8_t* bytes = static_cast<uint8_t*>(pages_.data());
    for (size_t i = 0; i < size * sizeof(T); ++i) bytes[i] = 0xFF;
  }
  Buffer(const std::vector<T>& values, Place place) : Buffer(values.size(), place) {
    for (size_t i = 0; i < size_; ++i) data()[i] = values[i];
  }

  T* data() { return static_cast<T*>(pages_.data()); }
  size_t size() const { return size_; }
  std::vector<T> values() { return std::vector<T>(data(), data() + size_); }

 private:
  PageBuffer pages_;
  size_t size_;
};

using Floats = std::vector<float>;

// A fixed sequence per seed, the same on every machine.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float Uniform(float low, float high);
  Floats Uniform(size_t size, float low, float high);

 private:
  std::mt19937 engine_;
};

// Rows that lie `stride` apart, in one vector that ends with the last row.
Floats Strided(const Floats& rows, size_t n, size_t stride);
size_t StridedSize(size_t rows, size_t n, size_t stride);
// The rows again; fails the test where something between them is not NaN any more.
Floats Unstrided(const Floats& strided, size_t n, size_t stride);

// |x| of every element.
Floats Abs(Floats x);

// Fails unless |actual - expected| <= bound(i) + kFlushed for every i; -0 equals 0, and equal infinities match. Names the worst
// element.
void ExpectNear(const char* what, const Floats& expected, const Floats& actual, const std::function<double(size_t)>& bound);
void ExpectEqual(const char* what, const Floats& expected, const Floats& actual);

// 1 .. 35 (all tails of two 16-lane vectors, and three more) and some usual ones.
std::vector<size_t> Sizes();

// Calls f for every table of KernelNames(), the reference included, with its name as a trace.
void ForEachTable(const std::function<void(const Kernels&)>& f);

}  // namespace tarn::testing

#endif  // TARN_TESTS_KERNELS_KERNEL_TESTING_H_
