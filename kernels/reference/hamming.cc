// Nearest codes by Hamming distance (MATH 1.9.1).
#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

int CountBits(uint64_t x) {
  int count = 0;
  for (; x != 0; x &= x - 1) ++count;
  return count;
}

}  // namespace

void NearestCode(size_t n, const uint64_t* codes, size_t center_count, const uint64_t* centers, uint32_t* nearest) {
  for (size_t i = 0; i < n; ++i) {
    size_t best = 0;
    for (size_t j = 1; j < center_count; ++j) {
      if (CountBits(codes[i] ^ centers[j]) < CountBits(codes[i] ^ centers[best])) best = j;
    }
    nearest[i] = static_cast<uint32_t>(best);
  }
}

}  // namespace tarn::reference
