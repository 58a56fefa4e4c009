// Slot memory attention (MATH F2): K~ <- a K~ + b x k, V~ <- a V~ + b x v, o = V~^T softmax(scale K~ q). A control strategy says
// what the slots keep (a) and take (b): ABC-MLP, Linformer, ABC-RD, L2G, compressive mean, online clustering, GSA, Luna (ABC,
// section 3 and Table 1; MATH 1.8).
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
static_assert(static_cast<int>(format::SlotControl::AbcMlp) == static_cast<int>(SlotControl::kAbcMlp));
static_assert(static_cast<int>(format::SlotControl::Linformer) == static_cast<int>(SlotControl::kLinformer));
static_assert(static_cast<int>(format::SlotControl::Assigned) == static_cast<int>(SlotControl::kAssigned));
static_assert(static_cast<int>(format::SlotControl::Global) == static_cast<int>(SlotControl::kGlobal));
static_assert(static_cast<int>(format::SlotControl::CompressiveMean) == static_cast<int>(SlotControl::kCompressiveMean));
static_assert(static_cast<int>(format::SlotControl::ClusteringOnline) == static_cast<int>(SlotControl::kClusteringOnline));
static_assert(static_cast<int>(format::SlotControl::Gsa) == static_cast<int>(SlotControl::kGsa));
static_assert(static_cast<int>(format::SlotControl::LunaCausal) == static_cast<int>(SlotControl::kLunaCausal));
static_assert(static_cast<size_t>(format::SlotControl::Clustering) == kSlotControlCount);

class SlotMemoryOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::SlotMemory& table = *context.op().attributes_as_SlotMemory();
    TARN_RETURN_IF_ERROR(ReadAttributes(table));
    const bool has_schedule = control_ == SlotControl::kLinformer;
    const uint32_t states = has_mass() ? 3 : 2;
    TARN_RETURN_IF_ERROR(
        context.Expect(/*inputs=*/has_logits() || has_index() ? 4 : 3, /*outputs=*/1, has_schedule, has_schedule, states));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *table.heads()));
    const uint64_t kv_heads = heads_.kv_heads();
    if (has_logits()) TARN_RETURN_IF_ERROR(context.ExpectInput(3, "control", kv_heads * slots_));
    if (has_index()) TARN_RETURN_IF_ERROR(context.ExpectInput(3, "slots", kv_heads, format::DType::I32));
    if (has_schedule) {
      TARN_ASSIGN_OR_RETURN(schedule_, context.ExpectTensor(0, "schedule", {max_len_, slots_}));
    }
    if (max_len_ > 0) context.BoundTokens(max_len_);
    TARN_ASSIGN_OR_RETURN(state_dtype_, context.ExpectTypedState(0, "K", {kv_heads, heads_.key_dim(), slots_}));
    TARN_ASSIGN_OR_RETURN(const DType values_dtype, context.ExpectTypedState(1, "V", {kv_heads, slots_, heads_.value_dim()}));
    if (values_dtype != state_dtype_) return Error(TARN_BAD_FORMAT, "states K and V have different dtypes");
    if (has_mass()) TARN_RETURN_IF_ERROR(context.ExpectState(2, "mass", {kv_heads, slots_}));
    RequestScratch(context);
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t cost = 2 * sizeof(float) * slots_ * (heads_.key_dim() + heads_.value_dim());  // K~ and V~ are read and written
    ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      ScratchFloats scratch(reinterpret_cast<float*>(context.scratch) + thread * scratch_floats_);
      const Task task(*this, context, sequence, kv_head, &scratch);
      if (context.tokens == 1 || !RunChunk(context, task, scratch)) {
        for (size_t token = 0; token < context.tokens; ++token) {
          if (token > 0) {
            task.keys.Round(*context.kernels);
            task.values.Round(*context.kernels);
          }
          RunStep(context, task, token, scratch);
        }
      }
      task.keys.WriteBack(*context.kernels);
      task.values.WriteBack(*context.kernels);
    });
    return Ok();
  }

 private:
  // One key/value head of one sequence: its columns and its state.
  struct Task {
    Task(const SlotMemoryOp& op, const RunContext& context, size_t sequence, size_t kv_head, ScratchFloats* scratch)
        : slices(context, op.heads_, sequence, kv_head),
          keys(*context.kernels, context.states[0], op.state_dtype_, sequence, kv_head * op.heads_.key_dim() * op.slots_,
               op.heads_.key_dim() * op.slots_, scratch),
          values(*context.kernels, context.states[1], op.state_dtype_, sequence, kv_head * op.slots_ * op.heads_.value_dim(),
                 op.slots_ * op.heads_.value_dim(), scratch) {
      if (op.has_logits() || op.has_index()) {
        stride = context.inputs[3].stride;
        const size_t column = op.has_logits() ? kv_head * op.slots_ : kv_head;
        const size_t first = sequence * context.tokens * stride + column;
        if (op.has_logits()) logits = context.inputs[3].f32() + first;
        if (op.has_index()) {
          index = reinterpret_cast<int32_t*>(scratch->Take(context.tokens));
          op.ReadIndex(context.inputs[3].i32() + first, stride, context.tokens, index);
          stride = 1;
        }
      }
      if (op.has_mass()) mass = context.states[2].f32(sequence) + kv_head * op.slots_;
    }
    HeadSlices slices;
    HeldState keys;
    HeldState values;
    const float* logits = nullptr;
    int32_t* index = nullptr;
    size_t stride = 0;  // of logits or index
    float* mass = nullptr;
  };

  // Slots of `tokens` tokens. Which op they come from is the file's choice, so they are held inside the range here.
  void ReadIndex(const int32_t* from, size_t stride, size_t tokens, int32_t* index) const {
    for (size_t t = 0; t < tokens; ++t) {
      const uint32_t slot = static_cast<uint32_t>(from[t * stride]);
      index[t] = static_cast<int32_t>(slot < slots_ ? slot : slots_ - 1);
    }
  }

  bool has_logits() const {
    return control_ == SlotControl::kAbcMlp || control_ == SlotControl::kGsa || control_ == SlotControl::kLunaCausal;
  }
  bool has_index() const { return control_ == SlotControl::kAssigned; }
  bool has_mass() const {
    return control_ == SlotControl::kAbcMlp || control_ == SlotControl::kCompressiveMean ||
           control_ == SlotControl::kClusteringOnline || (control_ == SlotControl::kAssigned && mask_empty_);
  }

  void RequestScratch(PrepareContext& context) {
    const uint64_t chunk = context.limits().max_tokens;
    const uint64_t d = heads_.key_dim();
    const uint64_t dv = heads_.value_dim();
    const uint64_t held =
        HeldState::ScratchFloatsFor(state_dtype_, d * slots_) + HeldState::ScratchFloatsFor(state_dtype_, slots_ * dv);
    const uint64_t step = 3 * ScratchFloats::Padded(slots_) + ScratchFloats::Padded(heads_.group() * slots_);
    const uint64_t chunked =
        4 * ScratchFloats::Padded(chunk * slots_) + ScratchFloats::Padded(SlotChunkScratch(chunk, slots_, d, dv));
    scratch_floats_ = held + ScratchFloats::Padded(chunk) + (step > chunked ? step : chunked);
    context.RequestScratch(context.limits().threads * scratch_floats_ * sizeof(float));
  }

  Status ReadAttributes(const format::SlotMemory& table) {
    if (table.activation() > format::SlotActivation::MAX || table.normalization() > format::SlotNormalization::MAX ||
        table.control() >= format::SlotControl::Clustering) {
      return Error(TARN_BAD_FORMAT, "unknown activation %u, normalization %u or control %u",
                   static_cast<unsigned>(table.activation()), static_cast<unsigned>(table.normalization()),
                   static_cast<unsigned>(table.control()));
    }
    constexpr uint32_t kMostSlots = 1u << 16;
    if (table.num_slots() < 1 || table.num_slots() > kMostSlots) {
      return Error(TARN_BAD_FORMAT, "num_slots is %u, 1 to %u wanted", table.num_slots(), kMostSlots);
    }
    const bool clamps = table.logit_min() <= table.logit_max() && table.logit_min() < HUGE_VALF && table.logit_max() > -HUGE_VALF;
    if (!clamps || !std::isfinite(table.scale()) || !(table.gate_normalizer() > 0)) {
      return Error(TARN_BAD_FORMAT, "logit clamp [%g, %g], scale %g or gate_normalizer %g (> 0 wanted)",
                   static_cast<double>(table.logit_min()), static_cast<double>(table.logit_max()),
                   static_cast<double>(table.scale()), static_cast<double>(table.gate_normalizer()));
    }
    control_ = static_cast<SlotControl>(table.control());
    slots_ = table.num_slots();
    activation_ = static_cast<SlotActivation>(table.activation());
    normalization_ = static_cast<SlotNormalization>(table.normalization());
    logit_min_ = table.logit_min();
    logit_max_ = table.logit_max();
    gate_normalizer_ = table.gate_normalizer();
    mask_empty_ = table.mask_empty();
    scale_ = table.scale();
    const bool is_bounded = control_ == SlotControl::kLinformer || control_ == SlotControl::kCompressiveMean;
    max_len_ = is_bounded ? table.max_len() : 0;
    if (is_bounded && (max_len_ < 1 || max_len_ > kMaxDimension)) {
      return Error(TARN_BAD_FORMAT, "max_len is %llu, 1 to %u wanted", static_cast<unsigned long long>(max_len_), kMaxDimension);
    }
    return control_ == SlotControl::kGlobal ? ReadPositions(table) : Ok();
  }

  Status ReadPositions(const format::SlotMemory& table) {
    const auto* positions = table.positions();
    const uint32_t count = positions == nullptr ? 0 : positions->size();
    if (count != slots_) return Error(TARN_BAD_FORMAT, "positions: %u found, num_slots is %zu", count, slots_);
    for (uint32_t i = 1; i < count; ++i) {
      if (positions->Get(i) <= positions->Get(i - 1)) return Error(TARN_BAD_FORMAT, "positions are not ascending at %u", i);
    }
    positions_ = positions->data();
    return Ok();
  }

  SlotControlArgs Control(const RunContext& context, const Task& task, size_t first_token, size_t tokens) const {
    SlotControlArgs args{};
    args.tokens = tokens;
    args.slots = slots_;
    args.tokens_seen = context.tokens_seen + first_token;
    args.logits = task.logits == nullptr ? nullptr : task.logits + first_token * task.stride;
    args.logit_stride = task.stride;
    args.activation = activation_;
    args.normalization = normalization_;
    args.clamp_min = logit_min_;
    args.clamp_max = logit_max_;
    args.gate_normalizer = gate_normalizer_;
    args.schedule = schedule_;
    args.max_len = max_len_;
    args.index = task.index == nullptr ? nullptr : task.index + first_token * task.stride;
    args.index_stride = task.stride;
    args.positions = positions_;
    args.k = task.slices.k + first_token * task.slices.k_stride;
    args.keys = task.keys.f32();
    args.key_dim = heads_.key_dim();
    args.mask_empty = mask_empty_;
    args.mass = task.mass;
    return args;
  }

  void RunStep(const RunContext& context, const Task& task, size_t token, ScratchFloats scratch) const {
    float* decay = scratch.Take(slots_);
    float* write = scratch.Take(slots_);
    float* bias = scratch.Take(slots_);
    float* work = scratch.Take(heads_.group() * slots_);
    context.kernels->slot_control_step[static_cast<size_t>(control_)](Control(context, task, token, 1), decay, write, bias);
    const HeadSlices& at = task.slices;
    context.kernels->slot_step({heads_.group(), slots_, heads_.key_dim(), heads_.value_dim(), at.q + token * at.q_stride,
                                at.k + token * at.k_stride, at.v + token * at.v_stride, decay, write, bias, scale_, task.keys.f32(),
                                task.values.f32(), at.o + token * at.o_stride, work});
  }

  // False where the controls of this chunk have no factored form, or none in f32; nothing has changed then.
  bool RunChunk(const RunContext& context, const Task& task, ScratchFloats scratch) const {
    const size_t tokens = context.tokens;
    float* carry = scratch.Take(tokens * slots_);
    float* gain = scratch.Take(tokens * slots_);
    float* weight = scratch.Take(tokens * slots_);
    float* bias = scratch.Take(tokens * slots_);
    const auto control = context.kernels->slot_control_chunk[static_cast<size_t>(control_)];
    if (!control(Control(context, task, 0, tokens), carry, gain, weight, bias)) return false;
    float* work = scratch.Take(SlotChunkScratch(tokens, slots_, heads_.key_dim(), heads_.value_dim()));
    const HeadSlices& at = task.slices;
    context.kernels->slot_chunk({tokens,
                                 heads_.group(),
                                 slots_,
                                 heads_.key_dim(),
                                 heads_.value_dim(),
                                 at.q,
                                 at.q_stride,
                                 at.k,
                                 at.k_stride,
                                 at.v,
                                 at.v_stride,
                                 carry,
                                 gain,
                                 weight,
                                 bias,
                                 scale_,
                                 task.keys.f32(),
                                 task.values.f32(),
                                 at.o,
                                 at.o_stride,
                                 work});
    return true;
  }

  Heads heads_;
  SlotControl control_;
  size_t slots_;
  SlotActivation activation_;
  SlotNormalization normalization_;
  float logit_min_;
  float logit_max_;
  float gate_normalizer_;
  bool mask_empty_;
  float scale_;
  uint64_t max_len_;  // 0: unbounded
  DType state_dtype_;
  const float* schedule_ = nullptr;      // [max_len, n]
  const uint32_t* positions_ = nullptr;  // [n]
  uint64_t scratch_floats_;              // of one thread
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::SlotMemory& a = *op.attributes_as_SlotMemory();
  char control[96] = "";
  if (a.control() == format::SlotControl::AbcMlp) {
    std::snprintf(control, sizeof(control), ", %s %s, clamp [%g, %g]", format::EnumNameSlotActivation(a.activation()),
                  format::EnumNameSlotNormalization(a.normalization()), static_cast<double>(a.logit_min()),
                  static_cast<double>(a.logit_max()));
  }
  std::snprintf(text, text_bytes, "%s: %u slots%s, heads %u/%u x %u/%u", a.system() == nullptr ? "unnamed" : a.system()->c_str(),
                a.num_slots(), control, a.heads()->heads(), a.heads()->kv_heads(), a.heads()->head_dim(), a.heads()->value_dim());
}

const format::Heads* HeadsOf(const format::Op& op) { return op.attributes_as_SlotMemory()->heads(); }

}  // namespace

const OpKind kSlotMemoryOp = MakeOpKind<SlotMemoryOp>("slot_memory", Describe, HeadsOf);

}  // namespace tarn
