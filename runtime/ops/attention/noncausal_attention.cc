#include "runtime/ops/attention/noncausal_attention.h"

#include <algorithm>

namespace tarn {
namespace {

constexpr uint64_t kBlockRows = 64;
// Rows of q that a task reads: few enough that a long sequence with few heads is shared by all threads.
constexpr size_t kTaskRows = 256;

}  // namespace

Status NoncausalAttentionOp::PrepareOperands(const PrepareContext& context, format::NoncausalPart part, const format::Heads& heads,
                                             uint32_t more_inputs) {
  part_ = part;
  if (part > format::NoncausalPart::MAX) return Error(TARN_BAD_FORMAT, "unknown part %u", static_cast<unsigned>(part));
  const bool reads = part != format::NoncausalPart::Write;
  TARN_RETURN_IF_ERROR(context.ExpectStage(writes() ? Stage::kEncode : Stage::kDecode));
  TARN_RETURN_IF_ERROR(context.ExpectValues(reads + (writes() ? 2 + more_inputs : 0), reads));
  TARN_ASSIGN_OR_RETURN(heads_, Heads::Of(heads));
  const Limits& limits = context.limits();
  if (writes()) {
    const uint32_t first = reads;
    TARN_RETURN_IF_ERROR(heads_.ExpectKeys(context, first, &key_axis_));
    for (uint32_t i = 0; i < more_inputs; ++i) {
      if (context.input_axis(first + 2 + i) == key_axis_) continue;
      return Error(TARN_BAD_FORMAT, "input %u and k have different numbers of rows", first + 2 + i);
    }
    block_keys_ = static_cast<size_t>(std::min(limits.MaxRows(key_axis_) / limits.batch, kBlockRows));
  }
  if (reads) {
    TARN_RETURN_IF_ERROR(heads_.ExpectQueries(context, &query_axis_));
    const uint64_t rows = limits.MaxRows(query_axis_) / (writes() ? limits.batch : limits.sources());
    block_queries_ = static_cast<size_t>(std::min(rows, std::max<uint64_t>(kBlockRows / heads_.group(), 1)));
  }
  return Ok();
}

Status NoncausalAttentionOp::PrepareMemory(PrepareContext& context, const NoncausalMemoryShape& shape, uint32_t tensors,
                                           uint64_t write_bytes, uint64_t read_bytes) {
  shape_ = shape;
  uint32_t states = 0;
  if (part_ != format::NoncausalPart::Whole) {
    TARN_ASSIGN_OR_RETURN(states, shape_.ExpectStates(context, heads_));
  }
  TARN_RETURN_IF_ERROR(context.ExpectOwned(tensors, tensors, states));
  const Limits& limits = context.limits();
  memories_ = threads_ = limits.threads;
  if (part_ == format::NoncausalPart::Whole) {
    memories_ = static_cast<uint32_t>(std::min<uint64_t>(memories_, uint64_t{limits.batch} * heads_.kv_heads()));
  } else if (!writes()) {
    memories_ = 0;  // they are read where the sources keep them
  }
  if (writes()) context.AddWork({heads_.kv_heads(), limits.MaxRows(key_axis_), shape_.elements()});
  if (part_ != format::NoncausalPart::Write) context.AddWork({heads_.heads(), limits.MaxRows(query_axis_), shape_.elements()});
  memory_bytes_ = CountScratch([&](Scratch* scratch) { shape_.Lay(scratch); });
  work_bytes_ = std::max(writes() ? write_bytes : 0, part_ == format::NoncausalPart::Write ? 0 : read_bytes);
  context.RequestScratch(CountScratch([&](Scratch* scratch) { Lay(scratch); }));
  return Ok();
}

NoncausalMemory NoncausalAttentionOp::MemoryAt(const Parts& parts, size_t index) const {
  Scratch scratch = parts.memories[index];
  return shape_.Lay(&scratch);
}

NoncausalMemory NoncausalAttentionOp::ClearMemoryAt(const Parts& parts, size_t index) const {
  const NoncausalMemory memory = MemoryAt(parts, index);
  shape_.Clear(memory);
  return memory;
}

Status NoncausalAttentionOp::Run(const RunContext& context) {
  Scratch scratch(context.scratch);
  const Parts parts = Lay(&scratch);
  switch (part_) {
    case format::NoncausalPart::Whole:
      RunWhole(context, parts);
      break;
    case format::NoncausalPart::Write:
      RunWrite(context, parts);
      break;
    case format::NoncausalPart::Read:
      RunRead(context, parts);
      break;
  }
  return Ok();
}

NoncausalKeys NoncausalAttentionOp::KeysOf(const RunContext& context, size_t sequence, size_t kv_head) const {
  const uint32_t first_input = part_ == format::NoncausalPart::Whole ? 1 : 0;
  const Operand& k = context.inputs[first_input];
  const Operand& v = context.inputs[first_input + 1];
  const size_t count = context.sequence_rows(key_axis_);
  const size_t row = sequence * count;
  return {kv_head,  row,
          count,    k.f32() + row * k.stride + kv_head * heads_.key_dim(),
          k.stride, v.f32() + row * v.stride + kv_head * heads_.value_dim(),
          v.stride};
}

size_t NoncausalAttentionOp::QueryRows(const RunContext& context) const {
  return context.sequence_rows(query_axis_) * (writes() ? 1 : context.beams);
}

NoncausalQueries NoncausalAttentionOp::QueriesOf(const RunContext& context, size_t owner, size_t kv_head, size_t begin,
                                                 size_t count) const {
  const Operand& q = context.inputs[0];
  const Operand& o = context.outputs[0];
  const size_t row = owner * QueryRows(context) + begin, first_head = kv_head * heads_.group();
  return {kv_head,
          count,
          q.f32() + row * q.stride + first_head * heads_.key_dim(),
          q.stride,
          o.f32() + row * o.stride + first_head * heads_.value_dim(),
          o.stride};
}

template <typename F>
void NoncausalAttentionOp::ForEach(const RunContext& context, const Parts& parts, size_t count, uint64_t element_cost,
                                   const F& f) const {
  context.threads->ParallelFor(count, element_cost * shape_.elements(), [&](size_t index, size_t thread) {
    if (context.cancelled()) return;
    const FlushDenormals flush;
    f(index, parts.work[thread].Fresh(), thread);
  });
}

template <typename F>
void NoncausalAttentionOp::ReadAll(const RunContext& context, const Parts& parts, size_t first, size_t count,
                                   const F& memory_of) const {
  const size_t rows = QueryRows(context);
  const size_t pieces = (rows + kTaskRows - 1) / kTaskRows;
  // An element is read once, four bytes at most, and every row multiplies with it.
  const uint64_t element_cost = uint64_t{count} * (sizeof(float) + heads_.group() * rows);
  ForEach(context, parts, count * pieces, element_cost, [&](size_t index, Scratch work, size_t) {
    const size_t task = first + index / pieces, begin = index % pieces * kTaskRows, end = std::min(begin + kTaskRows, rows);
    const StoredMemory memory = memory_of(index / pieces);
    for (size_t row = begin; row < end; row += block_queries_) {
      const size_t block = std::min(block_queries_, end - row);
      Read(context, QueriesOf(context, task / heads_.kv_heads(), task % heads_.kv_heads(), row, block), memory, work);
    }
  });
}

// As many memories at a time as there are threads: each is written by one of them, then their queries are shared by all.
void NoncausalAttentionOp::RunWhole(const RunContext& context, const Parts& parts) const {
  const size_t tasks = context.batch * heads_.kv_heads();
  for (size_t first = 0; first < tasks; first += memories_) {
    const size_t count = std::min<size_t>(memories_, tasks - first);
    ForEach(context, parts, count, count * context.sequence_rows(key_axis_), [&](size_t index, Scratch work, size_t) {
      const size_t task = first + index;
      Write(context, KeysOf(context, task / heads_.kv_heads(), task % heads_.kv_heads()), ClearMemoryAt(parts, index), work);
    });
    ReadAll(context, parts, first, count, [&](size_t index) { return MemoryAt(parts, index); });
  }
}

void NoncausalAttentionOp::RunWrite(const RunContext& context, const Parts& parts) const {
  const size_t tasks = context.batch * heads_.kv_heads();
  ForEach(context, parts, tasks, context.rows(key_axis_) * heads_.kv_heads(), [&](size_t task, Scratch work, size_t thread) {
    const size_t sequence = task / heads_.kv_heads(), kv_head = task % heads_.kv_heads();
    const NoncausalMemory memory = ClearMemoryAt(parts, thread);
    Write(context, KeysOf(context, sequence, kv_head), memory, work);
    shape_.Keep(context, memory, context.source + sequence, kv_head);
  });
}

void NoncausalAttentionOp::RunRead(const RunContext& context, const Parts& parts) const {
  ReadAll(context, parts, 0, context.batch / context.beams * heads_.kv_heads(),
          [&](size_t task) { return shape_.Kept(context, context.source_of(task / heads_.kv_heads()), task % heads_.kv_heads()); });
}

}  // namespace tarn
