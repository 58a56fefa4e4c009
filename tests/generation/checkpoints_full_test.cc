// Checkpoints of a model of the size that devices run: their bytes, and how long it takes to go back to one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/generation/checkpoints.h"
#include "tests/support/files.h"
#include "tests/support/loaded.h"

namespace tarn {
namespace {

std::string Text(const std::string& path) {
  const std::vector<uint8_t> bytes = test::ReadAll(path);
  return {bytes.begin(), bytes.end()};
}

constexpr uint32_t kCheckpoints = 50, kSpacing = 16;

TEST(LmSmall, FiftyCheckpointsTakeWhatTheyPromise) {
  const test::Loaded model(Text("examples/configs/lm-small-rfa-gate.json"), format::DType::F32, convert::Precision::kInt8);
  const test::SessionPointer session = model.New({1, 64, 1, 1});
  const uint32_t vocab = session->model().model().vocab_size(Stage::kDecode);
  const Generation generation = {session.get(), vocab, nullptr, nullptr, nullptr};
  const uint64_t promised = kCheckpoints * (AlignUp(session->StateBytes()) + AlignUp(vocab * sizeof(float)));
  const CheckpointsConfig config = {promised, 2048, kSpacing, 1};
  const CheckpointsBytes bytes = Checkpoints::Measure(generation, config).value();
  ASSERT_EQ(bytes.capacity, kCheckpoints);
  ASSERT_EQ(bytes.checkpoint * kCheckpoints, promised);
  Block block = std::move(Block::Allocate(DefaultAllocator(), bytes.total, "test").value());
  Checkpoints* const checkpoints = Checkpoints::Create(generation, config, {block.bytes(), DefaultAllocator()}).value();
  for (uint32_t i = 0; i < 60 * kSpacing; i += kSpacing) {
    std::vector<int32_t> tokens(kSpacing, static_cast<int32_t>(i % vocab));
    const float* const logits = session->Prefill(tokens.data(), tokens.size()).value();
    ASSERT_TRUE(checkpoints->Record(tokens.data(), tokens.size(), logits).ok());
  }
  ASSERT_EQ(checkpoints->ring().size(), kCheckpoints);
  std::vector<double> milliseconds;
  for (size_t i = kCheckpoints; i-- > 0;) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(checkpoints->Rewind(checkpoints->ring()[i].position).ok());
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("%llu bytes each, %llu in all; back: median %.3f ms, most %.3f ms\n",
              static_cast<unsigned long long>(bytes.checkpoint), static_cast<unsigned long long>(bytes.total),
              milliseconds[kCheckpoints / 2], milliseconds.back());
  Checkpoints::Destroy(checkpoints);
}

}  // namespace
}  // namespace tarn
