// A row of int3 weights as model files have it (I3 in schema/tarn.fbs): three planes of a byte for every 8 elements. Two elements
// stand in bits 0 to 5 of each plane's byte; the two last ones in bits 6 and 7 of the first and of the second plane, with their
// highest bits in 6 and 7 of the third.
#ifndef TARN_CORE_INT3_H_
#define TARN_CORE_INT3_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr size_t Int3RowBytes(size_t n) { return n / 8 * 3; }

// Element `part` of 8 whose bytes of the three planes these are.
constexpr int Int3Of(unsigned a, unsigned b, unsigned c, size_t part) {
  const unsigned byte = part < 2 ? a : part < 4 ? b : c;
  if (part < 6) return static_cast<int>(byte >> (part % 2 * 3) & 7) - 4;
  return static_cast<int>(part == 6 ? a >> 6 | (c >> 4 & 4) : b >> 6 | (c >> 5 & 4)) - 4;
}

// Element i of a row of n.
constexpr int Int3At(const uint8_t* row, size_t n, size_t i) {
  const uint8_t* byte = row + i / 8;
  return Int3Of(byte[0], byte[n / 8], byte[n / 4], i % 8);
}

// Sets that element, in bytes that are zero where it will stand.
constexpr void AddInt3(int value, size_t part, uint8_t* a, uint8_t* b, uint8_t* c) {
  const unsigned bits = static_cast<unsigned>(value + 4);
  uint8_t* byte = part < 2 || part == 6 ? a : part < 4 || part == 7 ? b : c;
  if (part < 6) {
    *byte = static_cast<uint8_t>(*byte | bits << (part % 2 * 3));
    return;
  }
  *byte = static_cast<uint8_t>(*byte | (bits & 3) << 6);
  *c = static_cast<uint8_t>(*c | (bits >> 2) << part);
}

}  // namespace tarn

#endif  // TARN_CORE_INT3_H_
