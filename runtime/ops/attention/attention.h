// What the three attention families share: heads, and the split of the work over them.
//
// Query head h reads key/value head h / group(). There is one state per key/value head, so a task is one key/value head of one
// sequence with all query heads of its group; tasks are independent and run on any thread.
#ifndef TARN_RUNTIME_OPS_ATTENTION_ATTENTION_H_
#define TARN_RUNTIME_OPS_ATTENTION_ATTENTION_H_

#include "kernels/denormals.h"
#include "runtime/ops/op.h"
#include "runtime/ops/scratch.h"
#include "variants/limits.h"

namespace tarn {

class Heads {
 public:
  // Checks the numbers of heads and sizes against each other. Errors, here and below: TARN_BAD_FORMAT.
  static Result<Heads> Of(const format::Heads& heads);
  // The same, then ExpectOperands. `shared_keys`: so many heads of q and k, each for a group of heads that have a state each; 0:
  // none are shared.
  static Result<Heads> Read(const PrepareContext& context, const format::Heads& heads, uint32_t shared_keys = 0);

  // q, k, v (inputs 0, 1, 2) and o (output 0), each with a row per token.
  Status ExpectOperands(const PrepareContext& context) const;

  // q (input 0) and o (output 0) alone. Sets `*axis` to theirs.
  Status ExpectQueries(const PrepareContext& context, Axis* axis) const;
  // k and v alone, inputs `first` and `first` + 1. Sets `*axis` to theirs.
  Status ExpectKeys(const PrepareContext& context, uint32_t first, Axis* axis) const;

  size_t heads() const { return heads_; }
  size_t kv_heads() const { return kv_heads_; }
  size_t group() const { return heads_ / kv_heads_; }
  size_t key_dim() const { return key_dim_; }
  size_t value_dim() const { return value_dim_; }
  // Columns of q and k, and the first of them that a key/value head reads.
  size_t query_width() const { return (shared_keys_ > 0 ? shared_keys_ : heads_) * key_dim_; }
  size_t key_width() const { return (shared_keys_ > 0 ? shared_keys_ : kv_heads_) * key_dim_; }
  size_t query_column(size_t kv_head) const { return key_dim_ * (shared_keys_ > 0 ? SharedKey(kv_head) : kv_head * group()); }
  size_t key_column(size_t kv_head) const { return key_dim_ * (shared_keys_ > 0 ? SharedKey(kv_head) : kv_head); }
  HeadSizes sizes() const { return {kv_heads_, key_dim_, value_dim_}; }

 private:
  size_t SharedKey(size_t kv_head) const { return kv_head / (kv_heads_ / shared_keys_); }

  size_t heads_ = 0;
  size_t kv_heads_ = 0;
  size_t key_dim_ = 0;
  size_t value_dim_ = 0;
  size_t shared_keys_ = 0;
};

// The columns of one task in the first row of its sequence's chunk. The heads of a group stand side by side.
struct HeadSlices {
  const float* q;
  size_t q_stride;
  const float* k;
  size_t k_stride;
  const float* v;
  size_t v_stride;
  float* o;
  size_t o_stride;

  HeadSlices(const RunContext& context, const Heads& heads, size_t sequence, size_t kv_head);
};

// f(sequence, kv_head, thread) for every task, the sequence by its place in the run, without denormals; none begins once the run is
// cancelled. `cost`: of the state of one query head for one token, as ThreadPool::For has it.
template <typename F>
void ForEachHead(const RunContext& context, const Heads& heads, uint64_t cost, const F& f) {
  // What every head takes beside its state (norms, features or a softmax, denominators): 0.2 to 0.3 us at least on Zen 4.
  constexpr uint64_t kBesideState = 8192;
  const uint64_t all = (cost + kBesideState) * heads.heads() * context.token_rows;
  context.threads->ParallelFor(context.batch * heads.kv_heads(), all, [&](size_t task, size_t thread) {
    if (context.cancelled()) return;
    const FlushDenormals flush;
    f(task / heads.kv_heads(), task % heads.kv_heads(), thread);
  });
}

// The f32 view of a piece of a state that is stored in f32 or f16: the state itself, or a copy in scratch that is rounded back when
// the task is done with it.
class HeldState {
 public:
  // The copy of a piece of `elements`; nullptr where none is needed.
  static float* LayCopy(Scratch* scratch, DType dtype, uint64_t elements) {
    return dtype == DType::kF32 ? nullptr : scratch->Take(elements);
  }
  HeldState(const Kernels& kernels, const StateBuffer& buffer, DType dtype, size_t sequence, size_t first, size_t elements,
            float* copy);
  void WriteBack(const Kernels& kernels) const;
  // What WriteBack and holding it again would make of it: between the steps of a loop, so that it ends as single steps do.
  void Round(const Kernels& kernels) const;
  float* f32() const { return f32_; }
  // The piece as it is stored, for kernels that take it so.
  static StateRows Stored(const StateBuffer& buffer, DType dtype, size_t sequence, size_t first) {
    if (dtype == DType::kF32) return buffer.f32(sequence) + first;
    return {RowType::kF16, reinterpret_cast<uint16_t*>(buffer.bytes(sequence)) + first};
  }

 private:
  float* f32_;
  uint16_t* f16_;  // nullptr: stored in f32
  size_t elements_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_ATTENTION_H_
