// Memory-compressed attention over a whole sequence (Liu et al. 2018; MATH 1.9.3): every query sees the rows of all complete
// blocks, and the learned row. The tokens behind the last complete block are seen by none.
#include <cstring>

#include "runtime/ops/attention/cache/noncausal_policy.h"

namespace tarn {
namespace {

size_t Rows(const NoncausalConfig& config, size_t tokens) { return tokens / config.compression.factor; }

void Prepare(NoncausalConfig* config) {
  config->compression = MemoryCompression::Of(config->variant);
  config->max_blocks = 2;  // with the learned row
  config->build_floats = uint64_t{kBuiltRows} * config->compression.factor * config->compression.dim;
}

// Tokens of blocks stand side by side for the convolution.
void Convolve(const BuildTask& task, const float* x, size_t x_stride, float* y) {
  const MemoryCompression& compression = task.config.compression;
  const size_t first = task.rows.first * compression.factor;
  for (size_t i = 0; i < task.rows.count * compression.factor; ++i) {
    std::memcpy(task.scratch + i * compression.dim, x + (first + i) * x_stride, compression.dim * sizeof(float));
  }
  compression.Convolve(task.kernels, task.kv_head, task.rows.count, task.scratch, y);
}

void Build(const BuildTask& task) {
  Convolve(task, task.k, task.k_stride, task.keys);
  Convolve(task, task.v, task.v_stride, task.values);
}

}  // namespace

const NoncausalPolicyKind kNoncausalMemoryCompressed = {Prepare, Rows, Build, nullptr};

}  // namespace tarn
