// Means of neighbouring tokens: the second level of Poolingformer (Zhang et al. 2021; MATH 1.9.6). The last spans are cut at the
// end of the sequence.
#include <cstring>

#include "runtime/ops/attention/cache/noncausal_policy.h"

namespace tarn {
namespace {

size_t Rows(const NoncausalConfig& config, size_t tokens) {
  const size_t stride = config.variant.attributes.pool_stride;
  return (tokens + stride - 1) / stride;
}

void Prepare(NoncausalConfig* config) {
  const CacheAttributes& a = config->variant.attributes;
  config->spans = {a.pool_stride, a.pool_kernel, a.window / 2};
}

// y = the mean of `count` rows of x.
void Mean(const Kernels& kernels, size_t count, const float* x, size_t x_stride, size_t width, float* y) {
  std::memcpy(y, x, width * sizeof(float));
  for (size_t i = 1; i < count; ++i) kernels.add(1, width, y, width, x + i * x_stride, x_stride, y, width);
  kernels.scale_f32(width, y, 1.0f / static_cast<float>(count), y);
}

void Build(const BuildTask& task) {
  const CacheAttributes& a = task.config.variant.attributes;
  const size_t d = task.config.variant.heads.key_dim(), dv = task.config.variant.heads.value_dim();
  for (size_t r = 0; r < task.rows.count; ++r) {
    const size_t begin = (task.rows.first + r) * a.pool_stride;
    const size_t count = task.tokens - begin < a.pool_kernel ? task.tokens - begin : a.pool_kernel;
    Mean(task.kernels, count, task.k + begin * task.k_stride, task.k_stride, d, task.keys + r * d);
    Mean(task.kernels, count, task.v + begin * task.v_stride, task.v_stride, dv, task.values + r * dv);
  }
}

}  // namespace

const NoncausalPolicyKind kNoncausalPooled = {Prepare, Rows, Build, nullptr};

}  // namespace tarn
