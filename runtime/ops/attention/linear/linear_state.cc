// Linear state attention (MATH F1): S <- A S + phi(k) x u, o = scale * phi(q)^T S / den. The feature map phi, the decay A and the
// write u are chosen by attributes: RFA, linear transformer, Performer, DPFP, delta rule with decay or without, T2R, GLA, RetNet,
// HGRN2, Mamba 2, RWKV-7.
#include <cmath>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/linear/linear_features.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class LinearStateOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override;
  Status Run(const RunContext& context) override;
  bool runs_steps() const override { return true; }

 private:
  // One key/value head of one sequence while it runs.
  struct Head {
    HeadSlices slices;
    size_t kv_head;
    size_t sequence;                   // its place in the run
    const float* phi_q;                // [G, C, M], or in a loop of steps [C, G, M]
    const float* phi_k;                // [C, M]
    const float* log_decay = nullptr;  // [C], or nullptr: no scalar decay
    const float* write = nullptr;      // [C], or nullptr: 1
    const float* beta = nullptr;       // [C], delta rule
    const float* removal = nullptr;    // [C, M] removal keys, rule "replace"
    StateRows state = nullptr;
    float* norm = nullptr;
  };

  // Scratch of one thread.
  struct Pieces {
    float* x;        // [(G + 1) C, d] q of all heads of the group, then k: normalised and scaled
    float* phi;      // [(G + 1) C, M]
    float* weights;  // [(G + 1) C] logarithms
    float* gates;    // [C] logarithm of the decay of each token
    float* writes;   // [C], or beta
    float* state;    // [M, dv] the copy that HeldState takes
    float* decay;    // [M] of one token, with a gate of features
    float* removal;  // [C, M] of rule "replace"
    float* taken;    // [M] of one token, likewise
    float* work;     // of the kernels
  };

  Pieces Lay(Scratch* scratch, uint64_t tokens, bool as_chunk) const;
  Status PrepareStates(PrepareContext& context);
  bool RunsAsChunk(uint64_t tokens) const { return tokens > 1 && a_.has_chunk_form(); }
  bool RunsAsChunk(const RunContext& context) const { return !context.steps && RunsAsChunk(context.tokens); }
  // Steps of the delta rule and the products of a chunk want floats.
  bool RunsAsStored(bool as_chunk) const { return !as_chunk && a_.rule == WriteRule::kSum; }
  void RunHead(const RunContext& context, size_t sequence, size_t kv_head, Scratch scratch) const;
  void MapFeatures(const RunContext& context, Head* head, const Pieces& pieces) const;
  void WeighTokens(const RunContext& context, Head* head, const Pieces& pieces) const;
  void RunChunk(const RunContext& context, const Head& head, const Pieces& pieces) const;
  void FillStep(const RunContext& context, const Head& head, size_t token, const Pieces& pieces, LinearStepArgs* step) const;
  size_t RunSteps(const RunContext& context, const Head& head, size_t token, size_t most, const Pieces& pieces) const;
  // The decay of every feature at a token, in pieces.decay; nullptr: they have none of their own. A tied gate turns the key in
  // pieces.phi into what is written.
  const float* RowDecay(const RunContext& context, const Head& head, size_t token, const Pieces& pieces) const;
  // The removal keys of all tokens, normalised, in pieces.removal.
  void PrepareRemoval(const RunContext& context, Head* head, const Pieces& pieces) const;
  // Logits of input `index` for the first token of a sequence's chunk, from column `column` on.
  static const float* Logits(const RunContext& context, size_t index, size_t sequence, size_t column) {
    const Operand& input = context.inputs[index];
    return input.f32() + sequence * context.tokens * input.stride + column;
  }
  size_t gate_input() const { return 3; }
  size_t beta_input() const { return a_.has_gate_logits() ? 4 : 3; }
  size_t removal_input() const { return beta_input() + 1; }
  uint32_t norm_state() const { return 1; }
  uint32_t max_state() const { return a_.has_norm() ? 2 : 1; }

  Heads heads_;
  LinearAttributes a_;
  LinearFeatures map_;
  size_t features_;                 // M
  DType state_dtype_;               // of S
  const float* gate_ = nullptr;     // [kv_heads] decay or rate
  const float* bound_ = nullptr;    // [kv_heads, M] least decays of a tied gate
  const float* removal_ = nullptr;  // [kv_heads, M] what removal keys are multiplied by
  uint64_t thread_bytes_;           // of scratch
};

Status LinearStateOp::Prepare(PrepareContext& context) {
  const format::LinearState& table = *context.op().attributes_as_LinearState();
  TARN_ASSIGN_OR_RETURN(a_, ReadLinearAttributes(table));
  const uint32_t inputs = 3u + a_.has_gate_logits() + a_.has_beta_logits() + a_.is_replace();
  const uint32_t feature_tensors = LinearFeatures::TensorCount(a_);
  const bool has_gate_tensor = InfoOf(a_.gate).tensor != nullptr || a_.gate_bounds;
  const uint32_t tensors = feature_tensors + has_gate_tensor + a_.is_replace();
  TARN_RETURN_IF_ERROR(context.Expect(inputs, /*outputs=*/1, tensors, tensors, StateCount(a_)));
  TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *table.heads(), a_.key_heads));
  TARN_ASSIGN_OR_RETURN(map_, LinearFeatures::Read(context, a_, heads_));
  features_ = map_.size();
  const uint64_t kv_heads = heads_.kv_heads();
  if (a_.has_gate_logits()) {
    const uint64_t width = LinearAttributes::LogitWidth(InfoOf(a_.gate).logits, kv_heads, features_);
    TARN_RETURN_IF_ERROR(context.ExpectInput(static_cast<uint32_t>(gate_input()), "gate", width));
  }
  if (a_.has_beta_logits()) {
    const uint64_t width = LinearAttributes::LogitWidth(InfoOf(a_.rule).logits, kv_heads, features_);
    TARN_RETURN_IF_ERROR(context.ExpectInput(static_cast<uint32_t>(beta_input()), "beta", width));
  }
  if (InfoOf(a_.gate).tensor != nullptr) {
    TARN_ASSIGN_OR_RETURN(gate_, context.ExpectTensor(feature_tensors, InfoOf(a_.gate).tensor, {kv_heads}));
  }
  if (a_.gate_bounds) {
    TARN_ASSIGN_OR_RETURN(bound_, context.ExpectTensor(feature_tensors, "bound", {kv_heads, features_}));
  }
  if (a_.is_replace()) {
    TARN_RETURN_IF_ERROR(context.ExpectInput(static_cast<uint32_t>(removal_input()), "removal key", kv_heads * features_));
    TARN_ASSIGN_OR_RETURN(removal_, context.ExpectTensor(tensors - 1, "removal", {kv_heads, features_}));
  }
  TARN_RETURN_IF_ERROR(PrepareStates(context));
  context.AddWork(
      {context.limits().MaxRows({format::Time::Tokens, 0}), heads_.heads(), features_, heads_.key_dim() + 2 * heads_.value_dim()});

  // As many steps take no more: a chunk has their pieces, too.
  thread_bytes_ = CountScratch(context.limits().max_chunk,
                               [&](Scratch* scratch, uint64_t tokens) { Lay(scratch, tokens, RunsAsChunk(tokens)); });
  context.RequestScratch(context.limits().threads * thread_bytes_);
  return Ok();
}

LinearStateOp::Pieces LinearStateOp::Lay(Scratch* scratch, uint64_t tokens, bool as_chunk) const {
  const uint64_t rows = (heads_.group() + 1) * tokens, dv = heads_.value_dim();
  Pieces pieces{};
  pieces.x = scratch->Take(rows * heads_.key_dim());
  pieces.phi = scratch->Take(rows * features_);
  pieces.weights = scratch->Take(rows);
  pieces.gates = scratch->Take(tokens);
  pieces.writes = scratch->Take(tokens);
  if (!RunsAsStored(as_chunk)) pieces.state = HeldState::LayCopy(scratch, state_dtype_, features_ * dv);
  if (as_chunk) {
    const auto work_floats = a_.is_delta() ? DeltaChunkScratch : LinearChunkScratch;
    pieces.work = scratch->Take(work_floats(tokens, features_, dv));
  } else if (a_.is_delta()) {
    pieces.work = scratch->Take(dv + (a_.decays_by_row() ? features_ : 0));
  }
  if (a_.decays_by_row()) pieces.decay = scratch->Take(features_);
  if (a_.is_replace()) {
    pieces.removal = scratch->Take(tokens * features_);
    pieces.taken = scratch->Take(features_);
  }
  return pieces;
}

Status LinearStateOp::PrepareStates(PrepareContext& context) {
  StateInfo states[kMaxLinearStates];
  StatesOf(a_, heads_.kv_heads(), heads_.key_dim(), heads_.value_dim(), states);
  for (uint32_t i = 1; i < StateCount(a_); ++i) TARN_RETURN_IF_ERROR(context.ExpectState(i, states[i]).status());
  TARN_ASSIGN_OR_RETURN(state_dtype_, context.ExpectState(0, states[0]));
  return Ok();
}

Status LinearStateOp::Run(const RunContext& context) {
  const uint64_t cost = 2 * sizeof(float) * features_ * heads_.value_dim();  // S is read and written
  ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
    RunHead(context, sequence, kv_head, ScratchParts(context.scratch, thread_bytes_)[thread]);
  });
  return Ok();
}

void LinearStateOp::RunHead(const RunContext& context, size_t sequence, size_t kv_head, Scratch scratch) const {
  Head head{HeadSlices(context, heads_, sequence, kv_head), kv_head, sequence, nullptr, nullptr};
  const bool as_chunk = RunsAsChunk(context);
  const Pieces pieces = Lay(&scratch, context.tokens, as_chunk);
  MapFeatures(context, &head, pieces);
  WeighTokens(context, &head, pieces);
  if (a_.is_replace()) PrepareRemoval(context, &head, pieces);
  const size_t elements = features_ * heads_.value_dim();
  if (a_.has_norm()) head.norm = context.states[norm_state()].f32(context.number(sequence)) + kv_head * features_;
  if (RunsAsStored(as_chunk)) {
    head.state = HeldState::Stored(context.states[0], state_dtype_, context.number(sequence), kv_head * elements);
    for (size_t token = 0; token < context.tokens;) token += RunSteps(context, head, token, context.tokens - token, pieces);
    return;
  }
  const HeldState state(*context.kernels, context.states[0], state_dtype_, context.number(sequence), kv_head * elements, elements,
                        pieces.state);
  head.state = state.f32();
  if (as_chunk) {
    RunChunk(context, head, pieces);
  } else {
    for (size_t token = 0; token < context.tokens; ++token) {
      if (token > 0) state.Round(*context.kernels);
      RunSteps(context, head, token, 1, pieces);
    }
  }
  state.WriteBack(*context.kernels);
}

// phi of all queries and keys, and the logarithms of their weights.
void LinearStateOp::MapFeatures(const RunContext& context, Head* head, const Pieces& pieces) const {
  const Kernels& kernels = *context.kernels;
  const size_t tokens = context.tokens;
  const size_t group = heads_.group();
  const size_t d = heads_.key_dim();
  const HeadSlices& at = head->slices;
  // The rows of all queries, then those of the keys, so that one call maps them all.
  float* const x = pieces.x;
  if (RunsAsChunk(context)) {
    for (size_t g = 0; g < group; ++g) map_.NormalizeQueries(kernels, tokens, at.q + g * d, at.q_stride, x + g * tokens * d);
  } else {
    for (size_t t = 0; t < tokens; ++t) map_.NormalizeQueries(kernels, group, at.q + t * at.q_stride, d, x + t * group * d);
  }
  float* x_k = x + group * tokens * d;
  map_.NormalizeKeys(kernels, tokens, at.k, at.k_stride, x_k);
  map_.Map(kernels, head->kv_head, group * tokens, tokens, x, pieces.phi, pieces.weights);
  head->phi_q = pieces.phi;
  head->phi_k = pieces.phi + group * tokens * features_;
  map_.WeighKeys(kernels, head->kv_head, tokens, x_k, pieces.weights + group * tokens);
}

// Scalar decay and weight of every token.
void LinearStateOp::WeighTokens(const RunContext& context, Head* head, const Pieces& pieces) const {
  const Kernels& kernels = *context.kernels;
  const size_t tokens = context.tokens;
  float* const first = pieces.gates;
  float* const second = pieces.writes;
  if (a_.is_delta()) {
    const float* logits = Logits(context, beta_input(), head->sequence, head->kv_head);
    kernels.scaled_sigmoid(tokens, logits, context.inputs[beta_input()].stride, a_.beta_scale, second);
    head->beta = second;
  }
  if (a_.gate == Gate::kForget) {
    const float* logits = Logits(context, gate_input(), head->sequence, head->kv_head);
    kernels.forget_gate(tokens, logits, context.inputs[gate_input()].stride, nullptr, second, first);
    head->log_decay = first;
    head->write = second;
  } else if (a_.gate == Gate::kConstant) {
    const float log_decay = std::log(gate_[head->kv_head]);
    for (size_t t = 0; t < tokens; ++t) first[t] = log_decay;
    head->log_decay = first;
  } else if (a_.gate == Gate::kSoftplus) {
    const float* logits = Logits(context, gate_input(), head->sequence, head->kv_head);
    kernels.softplus_gate(tokens, logits, context.inputs[gate_input()].stride, gate_[head->kv_head], nullptr, first);
    head->log_decay = first;
  } else if (a_.gate == Gate::kStep) {
    const float* logits = Logits(context, gate_input(), head->sequence, head->kv_head);
    kernels.step_gate(tokens, logits, context.inputs[gate_input()].stride, gate_[head->kv_head], a_.step_min, a_.step_max, second,
                      first);
    head->log_decay = first;
    head->write = second;
  } else if (a_.has_running_max()) {
    float* m = context.states[max_state()].f32(context.number(head->sequence)) + head->kv_head;
    const float* key_weights = pieces.weights + heads_.group() * tokens;
    kernels.running_max(tokens, /*first=*/context.tokens_seen(head->sequence) == 0, key_weights, m, first, second);
    head->log_decay = first;
    head->write = second;
  }
}

void LinearStateOp::PrepareRemoval(const RunContext& context, Head* head, const Pieces& pieces) const {
  const Operand& keys = context.inputs[removal_input()];
  const float* key = Logits(context, removal_input(), head->sequence, head->kv_head * features_);
  const float* by = removal_ + head->kv_head * features_;
  context.kernels->mul(context.tokens, features_, key, keys.stride, by, 0, pieces.removal, features_);
  if (a_.removal_norm != VectorNorm::kNone) {
    context.kernels->l2_normalize(context.tokens, features_, pieces.removal, features_, 1, a_.removal_norm_eps,
                                  a_.removal_norm == VectorNorm::kL2Inside, pieces.removal);
  }
  head->removal = pieces.removal;
}

void LinearStateOp::RunChunk(const RunContext& context, const Head& head, const Pieces& pieces) const {
  const HeadSlices& at = head.slices;
  const size_t tokens = context.tokens;
  const size_t dv = heads_.value_dim();
  if (a_.is_delta()) {
    context.kernels->delta_chunk({tokens, heads_.group(), features_, dv, head.phi_q, head.phi_k, at.v, at.v_stride, head.log_decay,
                                  head.beta, a_.scale, head.state.as<float>(), at.o, at.o_stride, pieces.work});
    return;
  }
  context.kernels->linear_chunk({tokens, heads_.group(), features_, dv, head.phi_q, head.phi_k, at.v, at.v_stride, head.log_decay,
                                 head.write, a_.den_mode, a_.den_eps, a_.scale, head.state.as<float>(), head.norm, at.o,
                                 at.o_stride, pieces.work});
}

const float* LinearStateOp::RowDecay(const RunContext& context, const Head& head, size_t token, const Pieces& pieces) const {
  if (!a_.decays_by_row()) return nullptr;
  if (a_.gate == Gate::kTied) {
    const float* bound = bound_ == nullptr ? nullptr : bound_ + head.kv_head * features_;
    float* key = pieces.phi + (heads_.group() * context.tokens + token) * features_;
    context.kernels->tied_gate(features_, key, bound, pieces.decay, key);
    return pieces.decay;
  }
  const float* logits = Logits(context, gate_input(), head.sequence, head.kv_head * features_);
  logits += token * context.inputs[gate_input()].stride;
  if (a_.gate == Gate::kVector) {
    context.kernels->vector_gate(features_, logits, a_.gate_normalizer, a_.gate_min, pieces.decay);
  } else if (a_.gate == Gate::kSigmoidVector) {
    context.kernels->sigmoid_gate(features_, logits, a_.gate_min, pieces.decay);
  } else {
    context.kernels->softplus_gate(features_, logits, 1, gate_[head.kv_head], pieces.decay, nullptr);
  }
  return pieces.decay;
}

// Some steps from `token` on, up to `most`, in one pass over the state; returns how many. Decays of rows have room for one.
size_t LinearStateOp::RunSteps(const RunContext& context, const Head& head, size_t token, size_t most, const Pieces& pieces) const {
  const Kernels& kernels = *context.kernels;
  LinearStepArgs steps[2];
  const LinearStepArgs& step = steps[0];
  FillStep(context, head, token, pieces, steps);
  if (a_.is_replace()) {
    const float* removal = head.removal + token * features_;
    const Operand& strengths = context.inputs[beta_input()];
    const float* logits = Logits(context, beta_input(), head.sequence, head.kv_head * features_) + token * strengths.stride;
    kernels.sigmoid_mul(1, features_, logits, features_, removal, features_, pieces.taken, features_);
    kernels.replace_step({step.queries, features_, step.value_dim, step.phi_q, step.phi_k, step.v, step.decay, step.row_decay,
                          removal, pieces.taken, a_.scale, head.state.as<float>(), step.o});
  } else if (a_.is_delta()) {
    const bool first = context.tokens_seen(head.sequence) + token == 0;
    kernels.delta_step({step.queries, features_, step.value_dim, step.phi_q, step.phi_k, step.v, step.decay, step.row_decay,
                        head.beta[token], a_.den_eps, a_.scale, first, head.state.as<float>(), head.norm, step.o, pieces.work});
  } else {
    const size_t count = most > 1 && !a_.decays_by_row() ? 2 : 1;
    if (count > 1) FillStep(context, head, token + 1, pieces, steps + 1);
    kernels.linear_steps(count, steps);
    return count;
  }
  return 1;
}

void LinearStateOp::FillStep(const RunContext& context, const Head& head, size_t token, const Pieces& pieces,
                             LinearStepArgs* step) const {
  const HeadSlices& at = head.slices;
  step->queries = heads_.group();
  step->features = features_;
  step->value_dim = heads_.value_dim();
  step->phi_q = head.phi_q + token * heads_.group() * features_;
  step->phi_k = head.phi_k + token * features_;
  step->v = at.v + token * at.v_stride;
  step->decay = head.log_decay == nullptr ? 1.0f : std::exp(head.log_decay[token]);
  step->row_decay = RowDecay(context, head, token, pieces);
  step->write = head.write == nullptr ? 1.0f : head.write[token];
  step->den_mode = a_.den_mode;
  step->den_eps = a_.den_eps;
  step->scale = a_.scale;
  step->state = head.state;
  step->norm = head.norm;
  step->o = at.o + token * at.o_stride;
}

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  DescribeLinear(*op.attributes_as_LinearState(), text, text_bytes);
}

const format::Heads* HeadsOf(const format::Op& op) { return op.attributes_as_LinearState()->heads(); }

}  // namespace

const OpKind kLinearStateOp = MakeOpKind<LinearStateOp>("linear_state", Describe, HeadsOf);

}  // namespace tarn
