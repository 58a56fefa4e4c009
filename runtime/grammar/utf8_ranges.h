// Ranges of code points as sequences of ranges of bytes.
#ifndef TARN_RUNTIME_GRAMMAR_UTF8_RANGES_H_
#define TARN_RUNTIME_GRAMMAR_UTF8_RANGES_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// The UTF-8 texts whose byte i lies in [low[i], high[i]], for all i < length.
struct ByteRanges {
  uint8_t length;
  uint8_t low[4], high[4];
};

// Cuts a range of code points into such sequences, in ascending order; surrogates are left out.
class Utf8Ranges {
 public:
  // At most 0x10FFFF.
  Utf8Ranges(uint32_t low, uint32_t high) : low_(low), high_(high) {}
  // False: there are no more.
  bool Next(ByteRanges* out);

 private:
  uint64_t low_;
  uint64_t high_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_UTF8_RANGES_H_
