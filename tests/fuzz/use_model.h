// A model from bytes, through the C API: opening, inspecting, measuring, packing and running it either works or is refused.
#ifndef TARN_TESTS_FUZZ_USE_MODEL_H_
#define TARN_TESTS_FUZZ_USE_MODEL_H_

#include <cstdint>
#include <vector>

namespace tarn::test {

// Its hashes are right. XNNPACK reads weights out of sight of the sanitizers; the portable layers, which run first, do not.
void UseModel(const std::vector<uint8_t>& file);

}  // namespace tarn::test

#endif  // TARN_TESTS_FUZZ_USE_MODEL_H_
