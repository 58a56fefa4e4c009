// PCG32 (PCG-XSH-RR 64/32 of M. E. O'Neill, pcg-random.org): the generator of every draw, ours to keep, so that a seed gives the
// same numbers on every machine and with every standard library.
#ifndef TARN_RUNTIME_TEXT_PCG32_H_
#define TARN_RUNTIME_TEXT_PCG32_H_

#include <cstdint>

namespace tarn {

class Pcg32 {
 public:
  // The stream of the reference's demo program: its published outputs are ours as well.
  static constexpr uint64_t kStream = 54;

  // As pcg32_srandom_r(seed, stream).
  explicit Pcg32(uint64_t seed, uint64_t stream = kStream) : increment_((stream << 1) | 1) {
    Next();
    state_ += seed;
    Next();
  }

  uint32_t Next() {
    const uint64_t old = state_;
    state_ = old * 6364136223846793005u + increment_;
    const uint32_t shifted = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
    const uint32_t rotation = static_cast<uint32_t>(old >> 59);
    return (shifted >> rotation) | (shifted << (-rotation & 31));
  }

  // Uniform in [0, 1), 53 bits: two draws, the first one high.
  double NextDouble() {
    const uint64_t high = Next();
    const uint64_t bits = (high << 32) | Next();
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = 0;
  uint64_t increment_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_PCG32_H_
