// Slot attention over whole sequences (ABC eq. 4; MATH 1.8): K~ = sum_i phi_i x k_i, V~ = sum_i phi_i x v_i, then every query reads
// o = V~^T softmax(scale K~ q + bias). A control says what share phi_i each key has in each slot: one by logits or a schedule
// (ABC-MLP, Linformer), or membership of one slot (ABC-RD, compressive mean, clustering).
#include <algorithm>
#include <cmath>

#include "runtime/ops/attention/noncausal_attention.h"
#include "runtime/ops/attention/slot/slot_attributes.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

// Shares come from a schedule or from ABC-MLP's logits; the slot of a member from an input, from clusters or from its place among
// max_len tokens. A control with another noncausal form needs its code here.
constexpr bool HasNoncausalCode(const SlotControlInfo& info) {
  switch (info.noncausal) {
    case NoncausalForm::kNone:
      return true;
    case NoncausalForm::kShares:
      return info.tensor == ControlTensor::kSchedule || (info.attributes & kReadsActivation) != 0;
    case NoncausalForm::kMembers:
      return info.input == ControlInput::kIndex || (info.attributes & (kReadsClusters | kReadsMaxLen)) != 0;
  }
  return false;
}

constexpr bool HasNoncausalCode() {
  for (const SlotControlInfo& info : kSlotControls) {
    if (!HasNoncausalCode(info)) return false;
  }
  return true;
}
static_assert(HasNoncausalCode());

class NoncausalSlotsOp final : public NoncausalAttentionOp {
 public:
  Status Prepare(PrepareContext& context) override;

 private:
  // Members of every slot: how many, and the sum of their keys.
  struct Members {
    uint32_t* counts;  // [n]
    float* key_sums;   // [n, d]
    int32_t* index;    // [block] the slots of a block's keys
    float* work;       // [n]
  };
  // What a block of keys gives to the slots.
  struct Shares {
    float *mass, *top, *carry;  // [n]
    float* shares;              // [block, n]
  };

  Status Check() const;
  Status BoundKeys(PrepareContext& context) const;
  Members LayMembers(Scratch* scratch) const;
  Shares LayShares(Scratch* scratch) const;
  float* LayScores(Scratch* scratch, uint64_t queries) const { return scratch->Take(queries * heads().group() * n()); }
  bool has_members() const { return a_.info().noncausal == NoncausalForm::kMembers; }
  bool has_bias() const { return a_.has_noncausal_bias(); }
  size_t n() const { return a_.num_slots; }

  void Write(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory, Scratch work) const override;
  void Read(const RunContext& context, const NoncausalQueries& queries, const StoredMemory& memory, Scratch work) const override;
  void WriteShares(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory, const Shares& pieces) const;
  // Of the columns of k and v that dim and dv say, by control number `which`: of K~, or of V~ where it has its own.
  void WriteSharesOf(uint32_t which, size_t dim, size_t dv, const RunContext& context, const NoncausalKeys& keys,
                     const NoncausalMemory& memory, const Shares& pieces) const;
  void WriteMembers(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory,
                    const Members& members) const;
  // K~ of Lloyd's first round: the keys at floor(j T / n).
  void SeedCentroids(const NoncausalKeys& keys, const NoncausalMemory& memory) const;
  // The slots of keys [first, first + count).
  void FindSlots(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory, size_t first, size_t count,
                 const Members& members) const;
  // Assigns every key, and makes K~, and V~ if it is wanted, of the members; a slot without any stays as it is.
  void Gather(const RunContext& context, const NoncausalKeys& keys, bool with_values, const NoncausalMemory& memory,
              const Members& members) const;

  SlotAttributes a_;
  const float* schedules_[2] = {};  // [max_len, n]
};

Status NoncausalSlotsOp::Prepare(PrepareContext& context) {
  const format::NoncausalSlots& op = *context.op().attributes_as_NoncausalSlots();
  const format::SlotMemory& table = *op.slots();
  TARN_ASSIGN_OR_RETURN(a_, ReadSlotAttributes(table));
  TARN_RETURN_IF_ERROR(Check());
  TARN_RETURN_IF_ERROR(PrepareOperands(context, op.part(), *table.heads(), a_.control_inputs()));
  if (writes()) {
    TARN_RETURN_IF_ERROR(ExpectControlInputs(context, a_, more_input(), heads().kv_heads()));
    TARN_RETURN_IF_ERROR(BoundKeys(context));
    if (a_.reads(kReadsClusters)) {
      // Keys of a few elements take no less time than keys of kLeastDim.
      constexpr uint64_t kLeastDim = 16;
      context.AddWork({heads().kv_heads(), a_.iterations, context.limits().MaxRows(key_axis()) + 1, n(),
                       std::max<uint64_t>(heads().key_dim(), kLeastDim)});
    }
  }
  TARN_RETURN_IF_ERROR(ExpectSchedules(context, a_, schedules_));
  NoncausalMemoryShape shape;
  shape.AddMatrix("K", heads().key_dim(), n());
  shape.AddMatrix("V", n(), heads().value_dim());
  if (has_bias()) shape.SetVector("bias", n());
  const uint64_t write_bytes =
      CountScratch([&](Scratch* scratch) { has_members() ? void(LayMembers(scratch)) : void(LayShares(scratch)); });
  const uint64_t read_bytes = CountScratch([&](Scratch* scratch) { LayScores(scratch, block_queries()); });
  return PrepareMemory(context, shape, a_.schedules(), write_bytes, read_bytes);
}

// What has no form without an order of the tokens.
Status NoncausalSlotsOp::Check() const {
  if (a_.info().noncausal == NoncausalForm::kNone) {
    return Error(TARN_BAD_FORMAT, "control %s: only a causal op has it", a_.info().name);
  }
  if (!a_.has_noncausal_form()) return Error(TARN_BAD_FORMAT, "normalization frozen: only a causal op has it");
  return Ok();
}

// A schedule has a row per key, and pooling a slot per share of them.
Status NoncausalSlotsOp::BoundKeys(PrepareContext& context) const {
  if (!a_.reads(kReadsMaxLen)) return Ok();
  if (key_axis().time != format::Time::Fixed) {
    context.BoundTokens(a_.max_len);
  } else if (key_axis().fixed_rows > a_.max_len) {
    return Error(TARN_BAD_FORMAT, "%u keys, max_len is %llu", key_axis().fixed_rows, static_cast<unsigned long long>(a_.max_len));
  }
  return Ok();
}

NoncausalSlotsOp::Members NoncausalSlotsOp::LayMembers(Scratch* scratch) const {
  Members members;
  members.counts = scratch->Take<uint32_t>(n());
  members.key_sums = scratch->Take(uint64_t{n()} * heads().key_dim());
  members.index = scratch->Take<int32_t>(block_keys());
  members.work = scratch->Take(n());
  return members;
}

NoncausalSlotsOp::Shares NoncausalSlotsOp::LayShares(Scratch* scratch) const {
  Shares pieces;
  pieces.mass = scratch->Take(n());
  pieces.top = scratch->Take(n());
  pieces.carry = scratch->Take(n());
  pieces.shares = scratch->Take(uint64_t{block_keys()} * n());
  return pieces;
}

void NoncausalSlotsOp::Write(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory,
                             Scratch work) const {
  if (has_members()) {
    WriteMembers(context, keys, memory, LayMembers(&work));
  } else {
    WriteShares(context, keys, memory, LayShares(&work));
  }
}

void NoncausalSlotsOp::WriteSharesOf(uint32_t which, size_t dim, size_t dv, const RunContext& context, const NoncausalKeys& keys,
                                     const NoncausalMemory& memory, const Shares& pieces) const {
  const Kernels& kernels = *context.kernels;
  SlotControlArgs control{};
  control.slots = n();
  control.attributes = a_;
  control.mass = pieces.mass;
  std::fill_n(pieces.mass, n(), 0.0f);
  std::fill_n(pieces.top, n(), 0.0f);
  for (size_t first = 0; first < keys.count; first += block_keys()) {
    const size_t count = std::min(block_keys(), keys.count - first);
    if (a_.has_logits()) {
      const Operand& logits = context.inputs[more_input() + which];
      control.tokens = count;
      control.tokens_seen = first;
      control.logits = logits.f32() + (keys.first + first) * logits.stride + keys.kv_head * n();
      control.logit_stride = logits.stride;
      kernels.abc_block(control, pieces.top, pieces.carry, pieces.shares);
    }
    kernels.slot_write({count, n(), dim, dv, keys.k + first * keys.k_stride, keys.k_stride, keys.v + first * keys.v_stride,
                        keys.v_stride, a_.has_logits() ? pieces.carry : nullptr,
                        a_.has_logits() ? pieces.shares : schedules_[which] + first * n(), memory.matrices[0], memory.matrices[1]});
  }
}

void NoncausalSlotsOp::WriteShares(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory,
                                   const Shares& pieces) const {
  const size_t dim = heads().key_dim(), dv = heads().value_dim();
  if (a_.own_value_control) WriteSharesOf(1, 0, dv, context, keys, memory, pieces);
  WriteSharesOf(0, dim, a_.own_value_control ? 0 : dv, context, keys, memory, pieces);  // last: its mass says which slots are empty
  // Exponentials and schedules leave no slot empty.
  if (!has_bias() || !a_.has_logits() || a_.activation == SlotActivation::kExp) return;
  for (size_t j = 0; j < n(); ++j) memory.vector[j] = pieces.mass[j] > 0.0f ? 0.0f : -HUGE_VALF;
}

void NoncausalSlotsOp::WriteMembers(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory,
                                    const Members& members) const {
  const bool clusters = a_.control == SlotControl::kClustering;
  const uint32_t rounds = clusters ? a_.iterations : 1;
  if (clusters) SeedCentroids(keys, memory);
  for (uint32_t round = 1; round <= rounds; ++round) {
    if (context.cancelled()) return;
    Gather(context, keys, /*with_values=*/round == rounds, memory, members);
  }
  if (!has_bias()) return;
  for (size_t j = 0; j < n(); ++j) {
    const uint32_t count = members.counts[j];
    memory.vector[j] = count == 0 ? -HUGE_VALF : a_.mass_bias ? std::log(static_cast<float>(count)) : 0.0f;
  }
}

void NoncausalSlotsOp::SeedCentroids(const NoncausalKeys& keys, const NoncausalMemory& memory) const {
  for (size_t j = 0; j < n(); ++j) {
    const uint64_t row = uint64_t{j} * keys.count / n();
    const float* key = keys.k + row * keys.k_stride;
    for (size_t x = 0; x < heads().key_dim(); ++x) memory.matrices[0][x * n() + j] = key[x];
  }
}

void NoncausalSlotsOp::FindSlots(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory, size_t first,
                                 size_t count, const Members& members) const {
  if (a_.control == SlotControl::kClustering) {
    context.kernels->nearest_slot({count, n(), heads().key_dim(), keys.k + first * keys.k_stride, keys.k_stride, memory.matrices[0],
                                   members.index, members.work});
  } else if (a_.has_index()) {
    const Operand& index = context.inputs[more_input()];
    ReadSlotIndex(index.i32() + (keys.first + first) * index.stride + keys.kv_head, index.stride, count, n(), members.index);
  } else {  // compressive mean: token t joins slot floor(n t / max_len)
    for (size_t t = 0; t < count; ++t) members.index[t] = static_cast<int32_t>(uint64_t{n()} * (first + t) / a_.max_len);
  }
}

void NoncausalSlotsOp::Gather(const RunContext& context, const NoncausalKeys& keys, bool with_values, const NoncausalMemory& memory,
                              const Members& members) const {
  const Kernels& kernels = *context.kernels;
  const size_t d = heads().key_dim(), dv = heads().value_dim();
  std::fill_n(members.counts, n(), 0u);
  std::fill_n(members.key_sums, n() * d, 0.0f);
  for (size_t first = 0; first < keys.count; first += block_keys()) {
    if (context.cancelled()) return;
    const size_t count = std::min(block_keys(), keys.count - first);
    FindSlots(context, keys, memory, first, count, members);
    for (size_t t = 0; t < count; ++t) {
      const size_t slot = static_cast<size_t>(members.index[t]);
      ++members.counts[slot];
      float* key = members.key_sums + slot * d;
      kernels.add(1, d, key, d, keys.k + (first + t) * keys.k_stride, d, key, d);
      if (!with_values) continue;
      float* value = memory.matrices[1] + slot * dv;
      kernels.add(1, dv, value, dv, keys.v + (first + t) * keys.v_stride, dv, value, dv);
    }
  }
  const bool sums = a_.info().content == SlotContent::kSum;  // ABC-RD divides by nothing
  for (size_t j = 0; j < n(); ++j) {
    if (members.counts[j] == 0) continue;
    const float share = sums ? 1.0f : 1.0f / static_cast<float>(members.counts[j]);
    for (size_t x = 0; x < d; ++x) memory.matrices[0][x * n() + j] = share * members.key_sums[j * d + x];
    for (size_t e = 0; with_values && e < dv; ++e) memory.matrices[1][j * dv + e] *= share;
  }
}

void NoncausalSlotsOp::Read(const RunContext& context, const NoncausalQueries& queries, const StoredMemory& memory,
                            Scratch work) const {
  const size_t group = heads().group();
  context.kernels->slot_read({queries.count, group, n(), heads().key_dim(), heads().value_dim(), queries.q, queries.q_stride,
                              memory.matrices[0], memory.matrices[1], memory.vector, a_.scale, queries.o, queries.o_stride,
                              LayScores(&work, queries.count)});
}

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::NoncausalSlots& a = *op.attributes_as_NoncausalSlots();
  const size_t used = Format(text, text_bytes, "%s ", format::EnumNameNoncausalPart(a.part()));
  DescribeSlots(*a.slots(), text + used, text_bytes - used);
}

const format::Heads* HeadsOf(const format::Op& op) {
  const format::NoncausalSlots& a = *op.attributes_as_NoncausalSlots();
  return a.part() == format::NoncausalPart::Whole ? nullptr : a.slots()->heads();  // which keeps nothing
}

}  // namespace

const OpKind kNoncausalSlotsOp = MakeOpKind<NoncausalSlotsOp>("noncausal_slots", Describe, HeadsOf);

}  // namespace tarn
