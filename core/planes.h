// Rows of int3 and int2 weights as model files have them (I3 and I2 in schema/tarn.fbs): a row of n weights is as many planes of
// n / 8 bytes as a weight has bits, and byte j of each plane holds a part of the weights 8 j to 8 j + 7.
//   int3: two weights in bits 0 to 5 of each plane's byte; the two last ones in bits 6 and 7 of the first and of the second plane,
//     with their highest bits in 6 and 7 of the third.
//   int2: four weights in each plane's byte, the first one lowest.
#ifndef TARN_CORE_PLANES_H_
#define TARN_CORE_PLANES_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr size_t PlaneRowBytes(unsigned bits, size_t n) { return n / 8 * bits; }

// A weight is stored as (weight + PlaneOffset) / PlaneStep. int3: -4 to 3, stored as 0 to 7. int2: -3, -1, 1 and 3, stored as 0
// to 3.
constexpr int PlaneOffset(unsigned bits) { return bits == 3 ? 4 : 3; }
constexpr int PlaneStep(unsigned bits) { return bits == 3 ? 1 : 2; }

// Weight `part` of 8: the bytes of its planes are at `byte`, and every `plane` bytes from there.
constexpr int PlaneWeight(unsigned bits, const uint8_t* byte, size_t plane, size_t part) {
  unsigned code = 0;
  if (bits == 2) {
    code = byte[part / 4 * plane] >> (part % 4 * 2) & 3u;
  } else if (part < 6) {
    code = byte[part / 2 * plane] >> (part % 2 * 3) & 7u;
  } else {
    code = byte[(part - 6) * plane] >> 6 | (byte[2 * plane] >> part & 1u) << 2;
  }
  return static_cast<int>(code) * PlaneStep(bits) - PlaneOffset(bits);
}

// Weight i of a row of n.
constexpr int PlaneWeightAt(unsigned bits, const uint8_t* row, size_t n, size_t i) {
  return PlaneWeight(bits, row + i / 8, n / 8, i % 8);
}

// Sets weight `part`, in bytes that are zero where it will stand.
constexpr void AddPlaneWeight(unsigned bits, int weight, size_t part, uint8_t* byte, size_t plane) {
  const unsigned code = static_cast<unsigned>((weight + PlaneOffset(bits)) / PlaneStep(bits));
  const auto add = [=](size_t number, unsigned value) {
    byte[number * plane] = static_cast<uint8_t>(byte[number * plane] | value);
  };
  if (bits == 2) return add(part / 4, code << (part % 4 * 2));
  if (part < 6) return add(part / 2, code << (part % 2 * 3));
  add(part - 6, (code & 3u) << 6);
  add(2, code >> 2 << part);
}

}  // namespace tarn

#endif  // TARN_CORE_PLANES_H_
