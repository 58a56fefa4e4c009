// A set of bytes.
#ifndef TARN_RUNTIME_GRAMMAR_BYTE_SET_H_
#define TARN_RUNTIME_GRAMMAR_BYTE_SET_H_

#include <cstdint>

namespace tarn {

struct ByteSet {
  uint64_t words[4] = {};

  void Add(uint8_t low, uint8_t high) {
    for (uint32_t i = low / 64u; i <= high / 64u; ++i) {
      const uint32_t begin = i == low / 64u ? low % 64u : 0, last = i == high / 64u ? high % 64u : 63;
      words[i] |= ~uint64_t{0} >> (63 - last) & ~uint64_t{0} << begin;
    }
  }
  bool Has(uint8_t byte) const { return (words[byte / 64] >> (byte % 64) & 1) != 0; }
  // Whether anything was new.
  bool Join(const ByteSet& other) {
    bool changed = false;
    for (int i = 0; i < 4; ++i) {
      changed = changed || (other.words[i] & ~words[i]) != 0;
      words[i] |= other.words[i];
    }
    return changed;
  }
  bool operator==(const ByteSet& other) const {
    return words[0] == other.words[0] && words[1] == other.words[1] && words[2] == other.words[2] && words[3] == other.words[3];
  }
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_BYTE_SET_H_
