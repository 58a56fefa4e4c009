// Decay does not end in denormals.
#include "kernels/denormals.h"

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

// A state that decays and that nothing is written to.
float Decayed(const Kernels& kernels) {
  const Floats zero(1, 0.0f), one(1, 1.0f);
  Floats state(1, 1.0f), o(1);
  const LinearStepArgs step = {
      1,       1,       1, one.data(), zero.data(), one.data(), 0.9f, nullptr, 1.0f, DenMode::kNone, 0.0f, 1.0f, state.data(),
      nullptr, o.data()};
  for (int i = 0; i < 2000; ++i) kernels.linear_steps(1, &step);
  return state[0];
}

TEST(Denormals, AStateDecaysToZeroWhereTheyAreSlow) {
  ForEachTable([](const Kernels& kernels) {
    const float before = Decayed(kernels);
    float flushed;
    {
      const FlushDenormals flush;
      flushed = Decayed(kernels);
    }
#if defined(__SSE__) || defined(__aarch64__) || defined(__ARM_NEON)
    EXPECT_EQ(flushed, 0.0f);
#endif
    EXPECT_LT(flushed, 1e-37f);
    EXPECT_EQ(Decayed(kernels), before);  // the scope left nothing behind
  });
}

}  // namespace
}  // namespace tarn::testing
