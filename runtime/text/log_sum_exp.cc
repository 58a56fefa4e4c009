#include "runtime/text/log_sum_exp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/status.h"

namespace tarn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The sum runs over kLanes independent ones, which compilers may vectorize: the order of additions is the one written here, on
// every machine. Comparisons are of integers for the same reason: those of floats have side effects (exceptions) that stand in the
// way.
constexpr size_t kLanes = 16;
constexpr size_t kBlock = 64 * kLanes;  // of a pass: read for its maximum, then, from the first cache, for its sum
// So many terms are added in f32: their roundings, 7 * 2^-24 of the sum at most, and the error of each term stay below 1e-6.
constexpr size_t kTerms = 8;

constexpr int32_t kMagnitude = 0x7fffffff;
constexpr int32_t kInfinityBits = 0x7f800000;

inline int32_t BitsOf(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline float FromBits(int32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// exp(x) for x <= 0, as 2^n * exp(r) with |r| <= ln(2) / 2. The polynomial is Taylor's of degree 6: its relative error is below
// 0.3466^7 / 7! = 1.2e-7, and what rounding adds is as much again. Below -87, where the result would soon be denormal: exp(-87).
inline float NegativeExp(float x) {
  constexpr int32_t kMost = 0x42ae0000;       // 87
  constexpr float kToInteger = 12582912.0f;   // 1.5 * 2^23: adding it rounds to an integer, in the low bits
  constexpr float kLn2High = 0.693359375f;    // n * this is exact
  constexpr float kLn2Low = -2.12194440e-4f;  // ln 2 - kLn2High
  constexpr float kLog2E = 1.44269504f;
  const int32_t beyond = (BitsOf(x) & kMagnitude) - kMost;
  x = -FromBits(kMost + (beyond & (beyond >> 31)));  // the smaller magnitude; a branch would be one in the machine code
  const float shifted = x * kLog2E + kToInteger;
  const float n = shifted - kToInteger;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float power = 1.0f / 720;
  power = power * r + 1.0f / 120;
  power = power * r + 1.0f / 24;
  power = power * r + 1.0f / 6;
  power = power * r + 1.0f / 2;
  power = power * r + 1.0f;
  power = power * r + 1.0f;
  const auto exponent = static_cast<uint32_t>(BitsOf(shifted)) + 127;  // the low bits of `shifted` are n
  return power * FromBits(static_cast<int32_t>(exponent << 23));
}

// The largest of x [count]; NaN if there is one.
float Largest(const float* x, size_t count) {
  int32_t largest = INT32_MIN;
  int32_t magnitude = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t bits = BitsOf(x[i]);
    largest = std::max(largest, bits ^ ((bits >> 31) & kMagnitude));  // ordered as the floats are
    magnitude = std::max(magnitude, bits & kMagnitude);
  }
  if (magnitude > kInfinityBits) return FromBits(magnitude);
  return FromBits(largest ^ ((largest >> 31) & kMagnitude));
}

// Of exp(x_i - largest) over x [count], largest finite.
double SumOfExp(const float* x, size_t count, float largest) {
  double sum = 0;
  size_t i = 0;
  while (i + kLanes <= count) {
    float sums[kLanes] = {};
    const size_t end = std::min(count, i + kTerms * kLanes);
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += NegativeExp(x[i + lane] - largest);
    }
    for (const float lane : sums) sum += static_cast<double>(lane);
  }
  for (; i < count; ++i) sum += static_cast<double>(NegativeExp(x[i] - largest));
  return sum;
}

Status NotFinite(const float* logits, size_t size) {
  const float* bad = std::find_if(logits, logits + size, [](float x) { return !(x < kInfinity); });
  if (bad == logits + size) return Error(TARN_INVALID_ARGUMENT, "every logit is -inf: no token can follow");
  return Error(TARN_INVALID_ARGUMENT, "the logit of token %td is %s", bad - logits, std::isnan(*bad) ? "NaN" : "inf");
}

}  // namespace

Status Summarize(const float* logits, size_t size, LogSumExp* result) {
  float largest = -kInfinity;
  double sum = 0;  // of exp(x - largest) so far
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    const float of_block = Largest(logits + begin, count);
    if (!(of_block < kInfinity)) return NotFinite(logits, size);
    if (of_block == -kInfinity) continue;
    if (of_block > largest) {
      sum *= std::exp(static_cast<double>(largest) - static_cast<double>(of_block));
      largest = of_block;
    }
    sum += SumOfExp(logits + begin, count, largest);
  }
  if (largest == -kInfinity) return NotFinite(logits, size);
  *result = {largest, std::log(sum)};
  return Ok();
}

}  // namespace tarn
