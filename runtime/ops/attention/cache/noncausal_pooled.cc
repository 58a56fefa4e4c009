// Means of neighbouring tokens: the second level of Poolingformer (Zhang et al. 2021; MATH 1.9.6). The last spans are cut at the
// end of the sequence.
#include <cstring>

#include "runtime/ops/attention/cache/noncausal_policy.h"

namespace tarn {
namespace {

size_t Rows(const NoncausalConfig& config, size_t tokens) {
  const size_t stride = config.attributes->pool_stride();
  return (tokens + stride - 1) / stride;
}

Status Prepare(PrepareContext&, NoncausalConfig* config) {
  const format::CacheAttention& table = *config->attributes;
  TARN_RETURN_IF_ERROR(ExpectAtLeast("window", table.window(), 1));
  TARN_RETURN_IF_ERROR(ExpectAtLeast("pool_kernel", table.pool_kernel(), 1));
  TARN_RETURN_IF_ERROR(ExpectAtLeast("pool_stride", table.pool_stride(), 1));
  config->spans = {table.pool_stride(), table.pool_kernel(), table.window() / 2};
  return Ok();
}

// y = the mean of `count` rows of x.
void Mean(const Kernels& kernels, size_t count, const float* x, size_t x_stride, size_t width, float* y) {
  std::memcpy(y, x, width * sizeof(float));
  for (size_t i = 1; i < count; ++i) kernels.add(1, width, y, width, x + i * x_stride, x_stride, y, width);
  kernels.scale_f32(width, y, 1.0f / static_cast<float>(count), y);
}

void Build(const BuildTask& task) {
  const format::CacheAttention& table = *task.config.attributes;
  const size_t d = task.config.heads.key_dim(), dv = task.config.heads.value_dim();
  for (size_t r = 0; r < task.rows.count; ++r) {
    const size_t begin = (task.rows.first + r) * table.pool_stride();
    const size_t count = task.tokens - begin < table.pool_kernel() ? task.tokens - begin : table.pool_kernel();
    Mean(task.kernels, count, task.k + begin * task.k_stride, task.k_stride, d, task.keys + r * d);
    Mean(task.kernels, count, task.v + begin * task.v_stride, task.v_stride, dv, task.values + r * dv);
  }
}

}  // namespace

const NoncausalPolicyKind kNoncausalPooled = {Prepare, Rows, Build};

}  // namespace tarn
