#include "tools/convert/checkpoint/random_weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tarn::convert {
namespace {

// The quantile function of |N(0, 1)| at u in (0, 1), in fixed point: exact at 64 knots in every octave of u, linear between them
// (off by less than 2e-5). The C library has a say only in the knots, and they are rounded far above its last digits.
class NormalTable {
 public:
  NormalTable() {
    for (size_t octave = 0; octave < kOctaves; ++octave) {
      for (size_t cell = 0; cell < kCells; ++cell) {
        knots_[octave * kCells + cell] = Knot(std::ldexp(1.0 + static_cast<double>(cell) / kCells, -static_cast<int>(octave) - 1));
      }
    }
  }

  // A deviate in units of 2^-27 from 64 random bits: one of sign, then u.
  int64_t operator()(uint64_t bits) const {
    const uint64_t u = (bits << 1) | 1;  // 64 bits with a last bit set, so that the leading one exists
    const size_t octave = std::min(static_cast<size_t>(__builtin_clzll(u)), kOctaves - 1);
    const uint64_t mantissa = u << octave;
    const size_t cell = (mantissa >> 57) & (kCells - 1);
    const int64_t rest = (int64_t{1} << 24) - static_cast<int64_t>((mantissa >> 33) & 0xFFFFFF);
    const size_t index = octave * kCells + cell;
    // The knot above this one in u: the next cell, or the first cell of the octave before.
    const int64_t above = cell + 1 < kCells ? knots_[index + 1] : (octave == 0 ? 0 : knots_[(octave - 1) * kCells]);
    const int64_t magnitude = above + (((knots_[index] - above) * rest) >> 24);
    return (bits >> 63) != 0 ? -magnitude : magnitude;
  }

 private:
  static constexpr size_t kOctaves = 60;
  static constexpr size_t kCells = 64;

  // x with P(|N| > x) = u, by bisection.
  static int64_t Knot(double u) {
    double low = 0, high = 12;
    for (int i = 0; i < 64; ++i) {
      const double middle = 0.5 * (low + high);
      (std::erfc(middle * std::sqrt(0.5)) > u ? low : high) = middle;
    }
    return std::llround(std::ldexp(low, 27));
  }

  std::array<int64_t, kOctaves * kCells> knots_;
};

uint64_t SplitMix64(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
  return state ^ (state >> 31);
}

void FillNormal(uint64_t key, double deviation, uint64_t first, uint64_t count, float* out) {
  static const NormalTable table;
  const double unit = std::ldexp(deviation, -27);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bits = SplitMix64(key + (first + i + 1) * 0x9E3779B97F4A7C15u);
    out[i] = static_cast<float>(static_cast<double>(table(bits)) * unit);
  }
}

}  // namespace

void RandomWeights::Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const {
  const uint64_t key = XXH3_64bits_withSeed(spec.name.data(), spec.name.size(), seed_);
  const double fan_in = spec.shape.back();
  switch (spec.init) {
    case Init::kLinear:
      FillNormal(key, 1 / std::sqrt(fan_in), first, count, out);
      break;
    case Init::kConv:
      FillNormal(key, 1 / std::sqrt(static_cast<double>(ElementCount(spec.shape) / spec.shape[0])), first, count, out);
      break;
    case Init::kControl:
      FillNormal(key, 2 / std::sqrt(fan_in), first, count, out);
      break;
    case Init::kNormal:
      FillNormal(key, 1, first, count, out);
      break;
    case Init::kZero:
      std::fill_n(out, count, 0.0f);
      break;
    case Init::kOne:
      std::fill_n(out, count, 1.0f);
      break;
    case Init::kGateBias:
      for (uint64_t i = 0; i < count; ++i) {
        out[i] = static_cast<float>(fan_in == 1 ? 1 : 1 + 4 * static_cast<double>(first + i) / (fan_in - 1));
      }
      break;
  }
}

}  // namespace tarn::convert
