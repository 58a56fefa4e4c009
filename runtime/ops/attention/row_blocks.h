// What the ops over whole sequences share: their rows in blocks, so that a few heads are work for many threads, and scratch stays
// the same however long the sequence is.
#ifndef TARN_RUNTIME_OPS_ATTENTION_ROW_BLOCKS_H_
#define TARN_RUNTIME_OPS_ATTENTION_ROW_BLOCKS_H_

#include "runtime/ops/attention/attention.h"

namespace tarn {

// Rows of queries that read the keys together: enough for the matrix products of cache_attend, whose tiles are as long.
constexpr size_t kQueryBlock = 64;

struct RowRange {
  size_t first;
  size_t count;
};

// At most `capacity` rows: a bound of the sequence where it decides how many there are. Errors: TARN_BAD_FORMAT.
Status BoundRows(PrepareContext& context, Axis axis, uint64_t capacity);

// f(head, range, thread) for every head and block of its `rows`, without denormals; none begins once the run is cancelled. `cost`:
// of all of it, as ThreadPool::For has it.
template <typename F>
void ForEachRowBlock(const RunContext& context, size_t heads, size_t rows, size_t block, uint64_t cost, const F& f) {
  const size_t blocks = (rows + block - 1) / block;
  context.threads->ParallelFor(heads * blocks, cost, [&](size_t task, size_t thread) {
    if (context.cancelled()) return;
    const FlushDenormals flush;
    const size_t first = task % blocks * block;
    f(task / blocks, RowRange{first, rows - first < block ? rows - first : block}, thread);
  });
}

// The columns of a head, `width` of them, from a row of the operand on.
inline float* HeadRows(const Operand& operand, size_t row, size_t head, size_t width) {
  return operand.f32() + row * operand.stride + head * width;
}

// Rows of keys and values in f32 that everybody sees.
inline CacheBlock FloatBlock(size_t rows, const float* keys, size_t key_stride, const float* values, size_t value_stride) {
  CacheBlock block{};
  block.rows = rows;
  block.type = RowType::kF32;
  block.keys = keys;
  block.key_stride = key_stride;
  block.values = values;
  block.value_stride = value_stride;
  block.from = -kAlways;
  block.until = kAlways;
  return block;
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_ROW_BLOCKS_H_
