// Slot memory attention (MATH F2): K~ <- a K~ + b x k, V~ <- a V~ + b x v, o = V~^T softmax(scale K~ q). A control strategy says
// what the slots keep (a) and take (b): ABC-MLP, Linformer, ABC-RD, L2G, compressive mean, online clustering, GSA, Luna (ABC,
// section 3 and Table 1; MATH 1.8).
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
    TARN_ASSIGN_OR_RETURN(a_, SlotAttributes::Read(table));
    if (a_.control == format::SlotControl::Clustering) return Error(TARN_BAD_FORMAT, "control Clustering needs all keys at once");
    control_ = static_cast<SlotControl>(a_.control);
    const uint32_t states = has_mass() ? 3 : 2;
    TARN_RETURN_IF_ERROR(
        context.Expect(/*inputs=*/3 + a_.control_inputs(), /*outputs=*/1, a_.has_schedule(), a_.has_schedule(), states));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *table.heads()));
    const uint64_t kv_heads = heads_.kv_heads();
    TARN_RETURN_IF_ERROR(a_.ExpectControlInput(context, 3, kv_heads));
    if (a_.has_schedule()) {
      TARN_ASSIGN_OR_RETURN(schedule_, context.ExpectTensor(0, "schedule", {a_.max_len, a_.slots}));
    }
    if (a_.max_len > 0) context.BoundTokens(a_.max_len);
    TARN_ASSIGN_OR_RETURN(state_dtype_, context.ExpectTypedState(0, "K", {kv_heads, heads_.key_dim(), a_.slots}));
    TARN_ASSIGN_OR_RETURN(const DType values_dtype, context.ExpectTypedState(1, "V", {kv_heads, a_.slots, heads_.value_dim()}));
    if (values_dtype != state_dtype_) return Error(TARN_BAD_FORMAT, "states K and V have different dtypes");
    if (has_mass()) TARN_RETURN_IF_ERROR(context.ExpectState(2, "mass", {kv_heads, a_.slots}));
    context.AddWork({context.limits().MaxRows({format::Time::Tokens, 0}), heads_.heads(), a_.slots,
                     2 * (heads_.key_dim() + heads_.value_dim())});
    RequestScratch(context);
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t cost = 2 * sizeof(float) * a_.slots * (heads_.key_dim() + heads_.value_dim());  // K~ and V~ are read and written
    ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      Scratch scratch = ScratchParts(context.scratch, thread_bytes_)[thread];
      const Task task(*this, context, sequence, kv_head, LayTask(&scratch, context.tokens));
      if (context.tokens == 1 || !RunChunk(context, task, scratch)) RunSteps(context, task, scratch);
      task.keys.WriteBack(*context.kernels);
      task.values.WriteBack(*context.kernels);
    });
    return Ok();
  }

 private:
  // Scratch of one thread: these pieces, then those of a chunk or of a step.
  struct TaskPieces {
    float* keys;     // [d, n] and
    float* values;   // [n, dv]: the copies that HeldState takes
    int32_t* index;  // [C]
  };
  struct ChunkPieces {
    float *carry, *gain, *weight, *bias;  // [C, n]
    float* work;
  };
  struct StepPieces {
    float *decay, *write, *bias;  // [n]
    float* work;                  // [G, n]
  };

  TaskPieces LayTask(Scratch* scratch, uint64_t tokens) const {
    TaskPieces pieces{};
    pieces.keys = HeldState::LayCopy(scratch, state_dtype_, uint64_t{heads_.key_dim()} * a_.slots);
    pieces.values = HeldState::LayCopy(scratch, state_dtype_, uint64_t{heads_.value_dim()} * a_.slots);
    if (a_.has_index()) pieces.index = scratch->Take<int32_t>(tokens);
    return pieces;
  }

  ChunkPieces LayChunk(Scratch* scratch, uint64_t tokens) const {
    ChunkPieces pieces;
    pieces.carry = scratch->Take(tokens * a_.slots);
    pieces.gain = scratch->Take(tokens * a_.slots);
    pieces.weight = scratch->Take(tokens * a_.slots);
    pieces.bias = scratch->Take(tokens * a_.slots);
    pieces.work = scratch->Take(SlotChunkScratch(tokens, a_.slots, heads_.key_dim(), heads_.value_dim()));
    return pieces;
  }

  StepPieces LayStep(Scratch* scratch) const {
    StepPieces pieces;
    pieces.decay = scratch->Take(a_.slots);
    pieces.write = scratch->Take(a_.slots);
    pieces.bias = scratch->Take(a_.slots);
    pieces.work = scratch->Take(uint64_t{heads_.group()} * a_.slots);
    return pieces;
  }

  // One key/value head of one sequence: its columns and its state.
  struct Task {
    Task(const SlotMemoryOp& op, const RunContext& context, size_t sequence, size_t kv_head, const TaskPieces& pieces)
        : slices(context, op.heads_, sequence, kv_head),
          keys(*context.kernels, context.states[0], op.state_dtype_, sequence, kv_head * op.heads_.key_dim() * op.a_.slots,
               op.heads_.key_dim() * op.a_.slots, pieces.keys),
          values(*context.kernels, context.states[1], op.state_dtype_, sequence, kv_head * op.a_.slots * op.heads_.value_dim(),
                 op.a_.slots * op.heads_.value_dim(), pieces.values) {
      if (op.a_.has_logits() || op.a_.has_index()) {
        stride = context.inputs[3].stride;
        const size_t column = op.a_.has_logits() ? kv_head * op.a_.slots : kv_head;
        const size_t first = sequence * context.tokens * stride + column;
        if (op.a_.has_logits()) logits = context.inputs[3].f32() + first;
        if (op.a_.has_index()) {
          index = pieces.index;
          op.a_.ReadIndex(context.inputs[3].i32() + first, stride, context.tokens, index);
          stride = 1;
        }
      }
      if (op.has_mass()) mass = context.states[2].f32(sequence) + kv_head * op.a_.slots;
    }
    HeadSlices slices;
    HeldState keys;
    HeldState values;
    const float* logits = nullptr;
    int32_t* index = nullptr;
    size_t stride = 0;  // of logits or index
    float* mass = nullptr;
  };

  bool has_mass() const {
    return control_ == SlotControl::kAbcMlp || control_ == SlotControl::kCompressiveMean ||
           control_ == SlotControl::kClusteringOnline || (control_ == SlotControl::kAssigned && a_.mask_empty);
  }

  // Steps take the place of a chunk whose controls have no factored form.
  void RequestScratch(PrepareContext& context) {
    const uint64_t max_tokens = context.limits().max_tokens;
    Scratch task;
    LayTask(&task, max_tokens);
    Scratch chunk = task, step = task;
    if (max_tokens > 1) LayChunk(&chunk, max_tokens);
    LayStep(&step);
    thread_bytes_ = std::max(chunk.used(), step.used());
    context.RequestScratch(context.limits().threads * thread_bytes_);
  }

  SlotControlArgs Control(const RunContext& context, const Task& task, size_t first_token, size_t tokens) const {
    SlotControlArgs args{};
    args.tokens = tokens;
    args.slots = a_.slots;
    args.tokens_seen = context.tokens_seen + first_token;
    args.logits = task.logits == nullptr ? nullptr : task.logits + first_token * task.stride;
    args.logit_stride = task.stride;
    args.activation = a_.activation;
    args.normalization = a_.normalization;
    args.clamp_min = a_.logit_min;
    args.clamp_max = a_.logit_max;
    args.gate_normalizer = a_.gate_normalizer;
    args.schedule = schedule_;
    args.max_len = a_.max_len;
    args.index = task.index == nullptr ? nullptr : task.index + first_token * task.stride;
    args.index_stride = task.stride;
    args.positions = a_.positions;
    args.k = task.slices.k + first_token * task.slices.k_stride;
    args.keys = task.keys.f32();
    args.key_dim = heads_.key_dim();
    args.mask_empty = a_.mask_empty;
    args.mass = task.mass;
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
    context.kernels->slot_control_step[static_cast<size_t>(control_)](Control(context, task, token, 1), pieces.decay, pieces.write,
                                                                      pieces.bias);
    const HeadSlices& at = task.slices;
    context.kernels->slot_step({heads_.group(), a_.slots, heads_.key_dim(), heads_.value_dim(), at.q + token * at.q_stride,
                                at.k + token * at.k_stride, at.v + token * at.v_stride, pieces.decay, pieces.write, pieces.bias,
                                a_.scale, task.keys.f32(), task.values.f32(), at.o + token * at.o_stride, pieces.work});
  }

  // False where the controls of this chunk have no factored form, or none in f32; nothing has changed then.
  bool RunChunk(const RunContext& context, const Task& task, Scratch scratch) const {
    const size_t tokens = context.tokens;
    scratch = scratch.Fresh();
    const ChunkPieces pieces = LayChunk(&scratch, tokens);
    const auto control = context.kernels->slot_control_chunk[static_cast<size_t>(control_)];
    if (!control(Control(context, task, 0, tokens), pieces.carry, pieces.gain, pieces.weight, pieces.bias)) return false;
    const HeadSlices& at = task.slices;
    context.kernels->slot_chunk({tokens,
                                 heads_.group(),
                                 a_.slots,
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
                                 pieces.work});
    return true;
  }

  Heads heads_;
  SlotAttributes a_;
  SlotControl control_;
  DType state_dtype_;
  const float* schedule_ = nullptr;  // [max_len, n]
  uint64_t thread_bytes_;            // of scratch
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  DescribeSlots(*op.attributes_as_SlotMemory(), text, text_bytes);
}

const format::Heads* HeadsOf(const format::Op& op) { return op.attributes_as_SlotMemory()->heads(); }

}  // namespace

const OpKind kSlotMemoryOp = MakeOpKind<SlotMemoryOp>("slot_memory", Describe, HeadsOf);

}  // namespace tarn
