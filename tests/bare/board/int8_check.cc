// The int8 layer as it is compiled for a board, run on that board: all tails, extreme values, every sum exact.
#include <cstdint>
#include <initializer_list>

#include "kernels/dense/int8_bare.h"
#include "kernels/reference/reference.h"

extern "C" void board_print(const char* text);
extern "C" void board_exit(int status);

namespace tarn {
namespace {

constexpr size_t kMostInputs = 80, kRows = 2, kOutputs = 3;

uint8_t q[kRows * kMostInputs + 1];
int8_t weight[kOutputs * kMostInputs + 1];
float wanted[kRows * kOutputs], found[kRows * kOutputs];
const float kScales[kOutputs] = {1.0f, 1.0f, 1.0f};  // sums below 2^24 come out as they are

uint32_t state = 1;
uint8_t Next(uint32_t kind) {  // random, or only the smallest and the largest
  state = state * 1664525u + 1013904223u;
  return static_cast<uint8_t>(kind == 0 ? state >> 24 : (state >> 31) * 255);
}

// `shift`: neither row need begin at a multiple of 4.
bool IsExact(size_t in, int32_t zero_point, uint32_t kind, size_t shift) {
  for (uint8_t& value : q) value = Next(kind);
  for (int8_t& value : weight) value = static_cast<int8_t>(Next(kind) ^ 0x80);
  const Qdu8 params[kRows] = {{1.0f, zero_point}, {1.0f, 255 - zero_point}};
  reference::DenseQdu8Qc8w(kRows, in, kOutputs, q + shift, params, weight + shift, kScales, nullptr, wanted, kOutputs);
  DenseQdu8Qc8wBare(kRows, in, kOutputs, q + shift, params, weight + shift, kScales, nullptr, found, kOutputs);
  for (size_t i = 0; i < kRows * kOutputs; ++i) {
    if (found[i] != wanted[i]) return false;
  }
  return true;
}

bool AllAreExact() {
  for (size_t in = 1; in <= kMostInputs; ++in) {
    for (const int32_t zero_point : {0, 1, 100, 128, 255}) {
      for (const uint32_t kind : {0u, 1u}) {
        for (const size_t shift : {0, 1}) {
          if (!IsExact(in, zero_point, kind, shift)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace
}  // namespace tarn

int main() {
  const bool exact = tarn::AllAreExact();
  board_print(tarn::kInt8BareName);
  board_print(exact ? ": exact\n" : ": a sum is wrong\n");
  board_exit(exact ? 0 : 1);
}
