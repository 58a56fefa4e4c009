// Slot memory attention (MATH F2): K~ <- a K~ + b x k, V~ <- a V~ + b x v, o = V~^T softmax(scale K~ q). ABC-MLP: the slots are controlled by a
// projection of the layer's input (ABC, section 3.3 and Table 1; MATH 1.8.1).
#include <cmath>
#include <cstdio>

#include "runtime/ops/attention.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

static_assert(static_cast<int>(format::SlotActivation::Exp) == static_cast<int>(SlotActivation::kExp));
static_assert(static_cast<int>(format::SlotActivation::Relu) == static_cast<int>(SlotActivation::kRelu));
static_assert(static_cast<int>(format::SlotActivation::Sigmoid) == static_cast<int>(SlotActivation::kSigmoid));
static_assert(static_cast<int>(format::SlotNormalization::Renorm) == static_cast<int>(SlotNormalization::kRenorm));
static_assert(static_cast<int>(format::SlotNormalization::Frozen) == static_cast<int>(SlotNormalization::kFrozen));

class SlotMemoryOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::SlotMemory& attributes = *context.op().attributes_as_SlotMemory();
    TARN_RETURN_IF_ERROR(ReadAttributes(attributes));
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/4, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/3));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *attributes.heads()));
    const size_t kv_heads = heads_.kv_heads();
    TARN_RETURN_IF_ERROR(context.ExpectInput(3, "control", uint64_t{kv_heads} * slots_));
    TARN_RETURN_IF_ERROR(context.ExpectState(0, "K", {kv_heads, heads_.key_dim(), slots_}));
    TARN_RETURN_IF_ERROR(context.ExpectState(1, "V", {kv_heads, slots_, heads_.value_dim()}));
    TARN_RETURN_IF_ERROR(context.ExpectState(2, "mass", {kv_heads, slots_}));

    const size_t chunk = context.limits().max_tokens;
    const size_t step = 3 * ScratchFloats::Padded(slots_) + ScratchFloats::Padded(heads_.group() * slots_);
    const size_t chunked =
        4 * ScratchFloats::Padded(chunk * slots_) +
        ScratchFloats::Padded(SlotChunkScratch(chunk, slots_, heads_.key_dim(), heads_.value_dim()));
    scratch_floats_ = step > chunked ? step : chunked;
    context.RequestScratch(uint64_t{context.limits().threads} * scratch_floats_ * sizeof(float));
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t cost = 2 * slots_ * (heads_.key_dim() + heads_.value_dim());
    ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      const Task task(*this, context, sequence, kv_head);
      float* scratch = reinterpret_cast<float*>(context.scratch) + thread * scratch_floats_;
      if (context.tokens > 1 && RunChunk(context, task, ScratchFloats(scratch))) return;
      for (size_t token = 0; token < context.tokens; ++token) RunStep(context, task, token, ScratchFloats(scratch));
    });
    return Ok();
  }

 private:
  // One key/value head of one sequence: its columns and its state.
  struct Task {
    Task(const SlotMemoryOp& op, const RunContext& context, size_t sequence, size_t kv_head)
        : slices(context, op.heads_, sequence, kv_head) {
      const size_t slots = op.slots_;
      logits_stride = context.inputs[3].stride;
      logits = context.inputs[3].f32() + sequence * context.tokens * logits_stride + kv_head * slots;
      keys = context.states[0].f32(sequence) + kv_head * op.heads_.key_dim() * slots;
      values = context.states[1].f32(sequence) + kv_head * slots * op.heads_.value_dim();
      mass = context.states[2].f32(sequence) + kv_head * slots;
    }
    HeadSlices slices;
    const float* logits;
    size_t logits_stride;
    float* keys;
    float* values;
    float* mass;
  };

  Status ReadAttributes(const format::SlotMemory& attributes) {
    if (attributes.activation() > format::SlotActivation::MAX || attributes.normalization() > format::SlotNormalization::MAX) {
      return Error(TARN_BAD_FORMAT, "unknown activation %u or normalization %u",
                   static_cast<unsigned>(attributes.activation()), static_cast<unsigned>(attributes.normalization()));
    }
    constexpr uint32_t kMostSlots = 1u << 16;
    if (attributes.num_slots() < 1 || attributes.num_slots() > kMostSlots) {
      return Error(TARN_BAD_FORMAT, "num_slots is %u, 1 to %u wanted", attributes.num_slots(), kMostSlots);
    }
    if (!(attributes.logit_min() <= attributes.logit_max()) || !std::isfinite(attributes.scale())) {
      return Error(TARN_BAD_FORMAT, "logit clamp [%g, %g] or scale %g", static_cast<double>(attributes.logit_min()),
                   static_cast<double>(attributes.logit_max()), static_cast<double>(attributes.scale()));
    }
    slots_ = attributes.num_slots();
    activation_ = static_cast<SlotActivation>(attributes.activation());
    normalization_ = static_cast<SlotNormalization>(attributes.normalization());
    logit_min_ = attributes.logit_min();
    logit_max_ = attributes.logit_max();
    mask_empty_ = attributes.mask_empty();
    scale_ = attributes.scale();
    return Ok();
  }

  AbcControlArgs Control(const RunContext& context, const Task& task, size_t first_token, size_t tokens) const {
    return {tokens,
            slots_,
            task.logits + first_token * task.logits_stride,
            task.logits_stride,
            activation_,
            normalization_,
            logit_min_,
            logit_max_,
            mask_empty_,
            /*first=*/context.tokens_seen + first_token == 0,
            task.mass};
  }

  void RunStep(const RunContext& context, const Task& task, size_t token, ScratchFloats scratch) const {
    float* decay = scratch.Take(slots_);
    float* write = scratch.Take(slots_);
    float* bias = scratch.Take(slots_);
    float* work = scratch.Take(heads_.group() * slots_);
    context.kernels->abc_control_step(Control(context, task, token, 1), decay, write, bias);
    const HeadSlices& at = task.slices;
    context.kernels->slot_step({heads_.group(), slots_, heads_.key_dim(), heads_.value_dim(), at.q + token * at.q_stride,
                                at.k + token * at.k_stride, at.v + token * at.v_stride, decay, write, bias, scale_, task.keys,
                                task.values, at.o + token * at.o_stride, work});
  }

  // False where the controls of this chunk do not factor in f32; nothing has changed then.
  bool RunChunk(const RunContext& context, const Task& task, ScratchFloats scratch) const {
    const size_t tokens = context.tokens;
    float* carry = scratch.Take(tokens * slots_);
    float* gain = scratch.Take(tokens * slots_);
    float* weight = scratch.Take(tokens * slots_);
    float* bias = scratch.Take(tokens * slots_);
    if (!context.kernels->abc_control_chunk(Control(context, task, 0, tokens), carry, gain, weight, bias)) return false;
    float* work = scratch.Take(SlotChunkScratch(tokens, slots_, heads_.key_dim(), heads_.value_dim()));
    const HeadSlices& at = task.slices;
    context.kernels->slot_chunk({tokens, heads_.group(), slots_, heads_.key_dim(), heads_.value_dim(), at.q, at.q_stride, at.k,
                                 at.k_stride, at.v, at.v_stride, carry, gain, weight, bias, scale_, task.keys, task.values, at.o,
                                 at.o_stride, work});
    return true;
  }

  Heads heads_;
  size_t slots_;
  SlotActivation activation_;
  SlotNormalization normalization_;
  float logit_min_;
  float logit_max_;
  bool mask_empty_;
  float scale_;
  size_t scratch_floats_;  // of one thread
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::SlotMemory& a = *op.attributes_as_SlotMemory();
  std::snprintf(text, text_bytes, "abc_mlp: %u slots, %s %s, clamp [%g, %g], heads %u/%u x %u/%u", a.num_slots(),
                format::EnumNameSlotActivation(a.activation()), format::EnumNameSlotNormalization(a.normalization()),
                static_cast<double>(a.logit_min()), static_cast<double>(a.logit_max()), a.heads()->heads(),
                a.heads()->kv_heads(), a.heads()->head_dim(), a.heads()->value_dim());
}

const format::Heads* HeadsOf(const format::Op& op) { return op.attributes_as_SlotMemory()->heads(); }

}  // namespace

const OpKind kSlotMemoryOp = MakeOpKind<SlotMemoryOp>("slot_memory", Describe, HeadsOf);

}  // namespace tarn
