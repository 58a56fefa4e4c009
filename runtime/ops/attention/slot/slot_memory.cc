// Slot memory attention (MATH F2): K~ <- a K~ + b x k, V~ <- a V~ + b x v, o = V~^T softmax(scale K~ q). A control says what
// the slots keep (a) and take (b): variants/slot_controls.h.
#include <algorithm>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/slot/slot_attributes.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class SlotMemoryOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::SlotMemory& table = *context.op().attributes_as_SlotMemory();
    TARN_ASSIGN_OR_RETURN(a_, ReadSlotAttributes(table));
    if (!a_.info().causal) return Error(TARN_BAD_FORMAT, "control %s: only a noncausal op has it", a_.info().name);
    TARN_ASSIGN_OR_RETURN(positions_, ReadSlotPositions(table, a_));
    control_ = CausalPlace(a_.control);
    TARN_RETURN_IF_ERROR(
        context.Expect(/*inputs=*/3 + a_.control_inputs(), /*outputs=*/1, a_.schedules(), a_.schedules(), StateCount(a_)));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *table.heads()));
    TARN_RETURN_IF_ERROR(ExpectControlInputs(context, a_, 3, heads_.kv_heads()));
    TARN_RETURN_IF_ERROR(ExpectSchedules(context, a_, schedules_));
    if (a_.reads(kReadsMaxLen)) context.BoundTokens(a_.max_len);
    TARN_RETURN_IF_ERROR(PrepareStates(context));
    context.AddWork({context.limits().MaxRows({format::Time::Tokens, 0}), heads_.heads(), a_.num_slots,
                     2 * (heads_.key_dim() + heads_.value_dim())});
    RequestScratch(context);
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t cost =
        2 * sizeof(float) * a_.num_slots * (heads_.key_dim() + heads_.value_dim());  // K~ and V~ are read and written
    ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      Scratch scratch = ScratchParts(context.scratch, thread_bytes_)[thread];
      const Task task(*this, context, sequence, kv_head, LayTask(&scratch, context.tokens));
      if (context.tokens == 1 || context.steps || !RunChunk(context, task, scratch)) RunSteps(context, task, scratch);
      task.keys.WriteBack(*context.kernels);
      task.values.WriteBack(*context.kernels);
    });
    return Ok();
  }
  bool runs_steps() const override { return true; }

 private:
  Status PrepareStates(PrepareContext& context) {
    StateInfo states[kMaxSlotStates];
    StatesOf(a_, heads_.kv_heads(), heads_.key_dim(), heads_.value_dim(), states);
    TARN_ASSIGN_OR_RETURN(state_dtype_, context.ExpectState(0, states[0]));
    TARN_ASSIGN_OR_RETURN(const DType values_dtype, context.ExpectState(1, states[1]));
    if (values_dtype != state_dtype_) return Error(TARN_BAD_FORMAT, "states K and V have different dtypes");
    for (uint32_t i = 2; i < StateCount(a_); ++i) TARN_RETURN_IF_ERROR(context.ExpectState(i, states[i]).status());
    return Ok();
  }

  // Scratch of one thread: these pieces, then those of a chunk or of a step.
  struct TaskPieces {
    float* keys;     // [d, n] and
    float* values;   // [n, dv]: the copies that HeldState takes
    int32_t* index;  // [C]
  };
  // What a control makes; `value_` of V~, nullptr where it has none of its own.
  struct ChunkPieces {
    float *carry, *gain, *weight, *bias;                                           // [C, n]
    float *value_carry = nullptr, *value_gain = nullptr, *value_weight = nullptr;  // [C, n]
    float* old_mass = nullptr;                                                     // [n]
    float* work;  // also the bias of V~'s control, which is nobody's
  };
  struct StepPieces {
    float *decay, *write, *bias;                           // [n]
    float *value_decay = nullptr, *value_write = nullptr;  // [n]
    float* work;                                           // [G, n], also as above
  };

  TaskPieces LayTask(Scratch* scratch, uint64_t tokens) const {
    TaskPieces pieces{};
    pieces.keys = HeldState::LayCopy(scratch, state_dtype_, uint64_t{heads_.key_dim()} * a_.num_slots);
    pieces.values = HeldState::LayCopy(scratch, state_dtype_, uint64_t{heads_.value_dim()} * a_.num_slots);
    if (a_.has_index()) pieces.index = scratch->Take<int32_t>(tokens);
    return pieces;
  }

  ChunkPieces LayChunk(Scratch* scratch, uint64_t tokens) const {
    ChunkPieces pieces;
    pieces.carry = scratch->Take(tokens * a_.num_slots);
    pieces.gain = scratch->Take(tokens * a_.num_slots);
    pieces.weight = scratch->Take(tokens * a_.num_slots);
    pieces.bias = scratch->Take(tokens * a_.num_slots);
    if (a_.own_value_control) {
      pieces.value_carry = scratch->Take(tokens * a_.num_slots);
      pieces.value_gain = scratch->Take(tokens * a_.num_slots);
      pieces.value_weight = scratch->Take(tokens * a_.num_slots);
      pieces.old_mass = scratch->Take(a_.num_slots);
    }
    uint64_t work = SlotChunkScratch(tokens, a_.num_slots, heads_.key_dim(), heads_.value_dim());
    if (a_.own_value_control) work = std::max(work, tokens * a_.num_slots);  // the bias of V~'s control: boards want less above
    pieces.work = scratch->Take(work);
    return pieces;
  }

  StepPieces LayStep(Scratch* scratch) const {
    StepPieces pieces;
    pieces.decay = scratch->Take(a_.num_slots);
    pieces.write = scratch->Take(a_.num_slots);
    pieces.bias = scratch->Take(a_.num_slots);
    if (a_.own_value_control) {
      pieces.value_decay = scratch->Take(a_.num_slots);
      pieces.value_write = scratch->Take(a_.num_slots);
    }
    pieces.work = scratch->Take(uint64_t{heads_.group()} * a_.num_slots);
    return pieces;
  }

  // One key/value head of one sequence: its columns and its state.
  struct Task {
    Task(const SlotMemoryOp& op, const RunContext& context, size_t sequence, size_t kv_head, const TaskPieces& pieces)
        : slices(context, op.heads_, sequence, kv_head),
          tokens_seen(context.tokens_seen(sequence)),
          keys(*context.kernels, context.states[0], op.state_dtype_, context.number(sequence),
               kv_head * op.heads_.key_dim() * op.a_.num_slots, op.heads_.key_dim() * op.a_.num_slots, pieces.keys),
          values(*context.kernels, context.states[1], op.state_dtype_, context.number(sequence),
                 kv_head * op.a_.num_slots * op.heads_.value_dim(), op.a_.num_slots * op.heads_.value_dim(), pieces.values) {
      for (uint32_t i = 0; i < op.a_.controls(); ++i) {
        Control& control = controls[i];
        control.schedule = op.schedules_[i];
        if (op.a_.has_logits()) {
          const Operand& logits = context.inputs[3 + i];
          control.stride = logits.stride;
          control.logits = logits.f32() + sequence * context.tokens * logits.stride + kv_head * op.a_.num_slots;
        }
        if (op.a_.has_mass()) control.mass = context.states[2 + i].f32(context.number(sequence)) + kv_head * op.a_.num_slots;
      }
      if (op.a_.has_index()) {
        const Operand& slots = context.inputs[3];
        index = pieces.index;
        ReadSlotIndex(slots.i32() + sequence * context.tokens * slots.stride + kv_head, slots.stride, context.tokens,
                      op.a_.num_slots, index);
      }
    }
    HeadSlices slices;
    uint64_t tokens_seen;
    HeldState keys;
    HeldState values;
    struct Control {
      const float* logits = nullptr;
      size_t stride = 0;
      const float* schedule = nullptr;
      float* mass = nullptr;
    } controls[2];  // of K~, and of V~ where it has its own
    int32_t* index = nullptr;
  };

  // Steps take the place of a chunk whose controls have no factored form.
  void RequestScratch(PrepareContext& context) {
    const uint64_t max_chunk = context.limits().max_chunk;
    Scratch task;
    LayTask(&task, max_chunk);
    Scratch chunk = task, step = task;
    if (max_chunk > 1) LayChunk(&chunk, max_chunk);
    LayStep(&step);
    thread_bytes_ = std::max(chunk.used(), step.used());
    context.RequestScratch(context.limits().threads * thread_bytes_);
  }

  // `which`: of Task::controls.
  SlotControlArgs Control(const Task& task, size_t which, size_t first_token, size_t tokens) const {
    const Task::Control& control = task.controls[which];
    SlotControlArgs args{};
    args.tokens = tokens;
    args.slots = a_.num_slots;
    args.tokens_seen = task.tokens_seen + first_token;
    args.logits = control.logits == nullptr ? nullptr : control.logits + first_token * control.stride;
    args.logit_stride = control.stride;
    args.attributes = a_;
    args.schedule = control.schedule;
    args.index = task.index == nullptr ? nullptr : task.index + first_token;
    args.index_stride = 1;
    args.positions = positions_;
    args.k = task.slices.k + first_token * task.slices.k_stride;
    args.keys = task.keys.f32();
    args.key_dim = heads_.key_dim();
    args.mass = control.mass;
    return args;
  }

  void RunSteps(const RunContext& context, const Task& task, Scratch scratch) const {
    scratch = scratch.Fresh();
    const StepPieces pieces = LayStep(&scratch);
    for (size_t token = 0; token < context.tokens; ++token) {
      if (token > 0) {
        task.keys.Round(*context.kernels);
        task.values.Round(*context.kernels);
      }
      RunStep(context, task, token, pieces);
    }
  }

  void RunStep(const RunContext& context, const Task& task, size_t token, const StepPieces& pieces) const {
    const auto control = context.kernels->slot_control_step[control_];
    control(Control(task, 0, token, 1), pieces.decay, pieces.write, pieces.bias);
    if (a_.own_value_control) control(Control(task, 1, token, 1), pieces.value_decay, pieces.value_write, pieces.work);
    const HeadSlices& at = task.slices;
    context.kernels->slot_step({heads_.group(), a_.num_slots, heads_.key_dim(), heads_.value_dim(), at.q + token * at.q_stride,
                                at.k + token * at.k_stride, at.v + token * at.v_stride, pieces.decay, pieces.write, pieces.bias,
                                a_.scale, task.keys.f32(), task.values.f32(), at.o + token * at.o_stride, pieces.work,
                                pieces.value_decay, pieces.value_write});
  }

  // The factors of a chunk. False where its controls have no factored form, or none in f32; nothing has changed then.
  bool ChunkFactors(const RunContext& context, const Task& task, const ChunkPieces& pieces) const {
    const auto control = context.kernels->slot_control_chunk[control_];
    float* const mass = task.controls[0].mass;
    if (a_.own_value_control && mass != nullptr) std::copy_n(mass, a_.num_slots, pieces.old_mass);
    if (!control(Control(task, 0, 0, context.tokens), pieces.carry, pieces.gain, pieces.weight, pieces.bias)) return false;
    if (!a_.own_value_control) return true;
    if (control(Control(task, 1, 0, context.tokens), pieces.value_carry, pieces.value_gain, pieces.value_weight, pieces.work)) {
      return true;
    }
    if (mass != nullptr) std::copy_n(pieces.old_mass, a_.num_slots, mass);
    return false;
  }

  // False where there are no factors; nothing has changed then.
  bool RunChunk(const RunContext& context, const Task& task, Scratch scratch) const {
    const size_t tokens = context.tokens;
    scratch = scratch.Fresh();
    const ChunkPieces pieces = LayChunk(&scratch, tokens);
    if (!ChunkFactors(context, task, pieces)) return false;
    const HeadSlices& at = task.slices;
    context.kernels->slot_chunk({tokens,
                                 heads_.group(),
                                 a_.num_slots,
                                 heads_.key_dim(),
                                 heads_.value_dim(),
                                 at.q,
                                 at.q_stride,
                                 at.k,
                                 at.k_stride,
                                 at.v,
                                 at.v_stride,
                                 pieces.carry,
                                 pieces.gain,
                                 pieces.weight,
                                 pieces.bias,
                                 a_.scale,
                                 task.keys.f32(),
                                 task.values.f32(),
                                 at.o,
                                 at.o_stride,
                                 pieces.work,
                                 pieces.value_carry,
                                 pieces.value_gain,
                                 pieces.value_weight});
    return true;
  }

  Heads heads_;
  SlotAttributes a_;
  size_t control_;                       // its place among the kernels
  const uint32_t* positions_ = nullptr;  // [n]
  DType state_dtype_;
  const float* schedules_[2] = {};  // [max_len, n]
  uint64_t thread_bytes_;           // of scratch
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  DescribeSlots(*op.attributes_as_SlotMemory(), text, text_bytes);
}

const format::Heads* HeadsOf(const format::Op& op) { return op.attributes_as_SlotMemory()->heads(); }

}  // namespace

const OpKind kSlotMemoryOp = MakeOpKind<SlotMemoryOp>("slot_memory", Describe, HeadsOf);

}  // namespace tarn
