// What the ops over whole sequences with a memory of constant size share (MATH 0.2 "Non-causal"): operands, which half is done
// where, and the order of the work. What a memory is, and how it is written and read, is the derived op's.
//
// In "encode" the memory of a key/value head is made of all its keys, then read by all its queries (Whole) or kept for its source
// (Write). In "decode" (Read) all sequences of a source read it: their queries stand in rows one after the other.
#ifndef TARN_RUNTIME_OPS_ATTENTION_NONCAUSAL_ATTENTION_H_
#define TARN_RUNTIME_OPS_ATTENTION_NONCAUSAL_ATTENTION_H_

#include "runtime/ops/attention/noncausal_memory.h"

namespace tarn {

// Keys and values of one head of one sequence.
struct NoncausalKeys {
  size_t kv_head;
  size_t first;  // row of the first of them among those of all sequences
  size_t count;
  const float* k;
  size_t k_stride;
  const float* v;
  size_t v_stride;
};

// Rows of q and o of one key/value head; the heads of its group stand side by side.
struct NoncausalQueries {
  size_t kv_head;
  size_t count;
  const float* q;
  size_t q_stride;
  float* o;
  size_t o_stride;
};

class NoncausalAttentionOp : public Op {
 public:
  Status Run(const RunContext& context) final;

 protected:
  ~NoncausalAttentionOp() = default;

  // First in Prepare: heads, program, and the values of this part, `more_inputs` after v where it writes, each with a row per key.
  // Errors: TARN_BAD_FORMAT.
  Status PrepareOperands(const PrepareContext& context, format::NoncausalPart part, const format::Heads& heads,
                         uint32_t more_inputs);
  // Last: tensors, states and scratch. `write_bytes` and `read_bytes`: what Write and Read lay out at most.
  Status PrepareMemory(PrepareContext& context, const NoncausalMemoryShape& shape, uint32_t tensors, uint64_t write_bytes,
                       uint64_t read_bytes);

  // `memory` is all zeros before.
  virtual void Write(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory, Scratch work) const = 0;
  // At most block_queries() of them.
  virtual void Read(const RunContext& context, const NoncausalQueries& queries, const StoredMemory& memory, Scratch work) const = 0;

  const Heads& heads() const { return heads_; }
  bool writes() const { return part_ != format::NoncausalPart::Read; }
  Axis key_axis() const { return key_axis_; }  // where it writes
  uint32_t more_input() const { return part_ == format::NoncausalPart::Whole ? 3 : 2; }
  // Rows that a kernel is given at a time, so that scratch does not grow with the sequence.
  size_t block_keys() const { return block_keys_; }
  size_t block_queries() const { return block_queries_; }

 private:
  struct Parts {
    ScratchParts memories;
    ScratchParts work;  // of each thread
  };

  Parts Lay(Scratch* scratch) const {
    return {scratch->TakeParts(memories_, memory_bytes_), scratch->TakeParts(threads_, work_bytes_)};
  }
  // Memory number `index` in scratch, also as all zeros.
  NoncausalMemory MemoryAt(const Parts& parts, size_t index) const;
  NoncausalMemory ClearMemoryAt(const Parts& parts, size_t index) const;
  NoncausalKeys KeysOf(const RunContext& context, size_t sequence, size_t kv_head) const;
  // Rows [begin, begin + count) of the queries of an owner of a memory: a sequence in "encode", a source in "decode", by
  // its place in the run.
  NoncausalQueries QueriesOf(const RunContext& context, size_t owner, size_t kv_head, size_t begin, size_t count) const;
  size_t QueryRows(const RunContext& context) const;  // of an owner
  // f(index, work, thread) for every index below count, without denormals; none begins once the run is cancelled. `element_cost`:
  // of one element of the memories, of all of them together, as ThreadPool::For has it.
  template <typename F>
  void ForEach(const RunContext& context, const Parts& parts, size_t count, uint64_t element_cost, const F& f) const;
  // Reads `count` memories, the first that of task `first`; memory_of(i) has the i-th.
  template <typename F>
  void ReadAll(const RunContext& context, const Parts& parts, size_t first, size_t count, const F& memory_of) const;
  void RunWhole(const RunContext& context, const Parts& parts) const;
  void RunWrite(const RunContext& context, const Parts& parts) const;
  void RunRead(const RunContext& context, const Parts& parts) const;

  format::NoncausalPart part_;
  Heads heads_;
  Axis key_axis_{};
  Axis query_axis_{};
  size_t block_keys_ = 0;
  size_t block_queries_ = 0;
  NoncausalMemoryShape shape_;
  uint32_t memories_ = 0;  // in scratch
  uint32_t threads_ = 0;
  uint64_t memory_bytes_ = 0;
  uint64_t work_bytes_ = 0;  // of one thread
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_NONCAUSAL_ATTENTION_H_
