#include "runtime/interpreter/program.h"

#include <new>

#include "core/arith.h"
#include "runtime/interpreter/packed_weights.h"
#include "runtime/ops/registry.h"
#include "runtime/platform/clock.h"

namespace tarn {
namespace {

template <typename T>
uint32_t Count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

}  // namespace

Program* Program::Build(const Environment& environment, Stage stage, const Limits& limits, Span<StateBuffer> states, Bump& bump) {
  const format::Program& graph = *environment.model->program(stage);
  void* place = bump.Take(sizeof(Program));
  const uint32_t ops = graph.ops()->size();
  Span<Node> nodes = TakeArray<Node>(bump, ops);
  Span<PlannedBuffer> values = TakeArray<PlannedBuffer>(bump, graph.values()->size());
  for (uint32_t i = 0; i < ops; ++i) {
    const format::Op& op = *graph.ops()->Get(i);
    const OpKind& kind = *FindOpKind(op.attributes_type());
    void* memory = bump.Take(kind.bytes);
    Span<Operand> inputs = TakeArray<Operand>(bump, Count(op.inputs()));
    Span<Operand> outputs = TakeArray<Operand>(bump, Count(op.outputs()));
    if (nodes.empty()) continue;
    Node& node = nodes[i];
    node.op = kind.construct(memory);
    node.inputs = inputs;
    node.outputs = outputs;
    // The states of an op have successive numbers.
    if (Count(op.states()) > 0) node.states = states.subspan(op.states()->Get(0), Count(op.states()));
  }
  if (place == nullptr || nodes.empty()) return nullptr;
  Program* program = new (place) Program(environment, stage, limits);
  program->nodes_ = nodes;
  program->values_ = values;
  return program;
}

void Program::Destroy() {
  for (Node& node : nodes_) {
    if (node.dense != nullptr) node.dense_backend->destroy(node.dense);
    node.dense = nullptr;
  }
}

Status Program::Prepare() {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    TARN_RETURN_IF_ERROR(PrepareNode(i).In("op '%s'", graph().ops()->Get(i)->name()->c_str()));
  }
  return PlanValues();
}

Status Program::PrepareNode(uint32_t index) {
  const format::Op& op = *graph().ops()->Get(index);
  Node& node = nodes_[index];
  PrepareContext context(*environment_.model, stage_, op, limits_, *environment_.kernels);
  TARN_RETURN_IF_ERROR(node.op->Prepare(context));
  node.scratch_bytes = context.scratch_bytes();
  node.constant_bytes = context.constant_bytes();
  if (node.constant_bytes > 0) needs_.bound += Bump::PieceBytes(node.constant_bytes);
  if (context.reported_dense() != nullptr) {
    node.reports_dense = true;
    node.dense_spec = *context.reported_dense();
  }
  if (context.dense() != nullptr) {
    node.has_dense = true;
    node.dense_spec = *context.dense();
    node.dense_backend = &BackendOf(*environment_.dense, node.dense_spec);
    TARN_ASSIGN_OR_RETURN(const DenseBytes bytes, node.dense_backend->measure(node.dense_spec));
    node.packed_bytes = bytes.packed;
    node.layer_bytes = bytes.layer;
    if (bytes.scratch > node.scratch_bytes) node.scratch_bytes = bytes.scratch;
    needs_.bound += Bump::PieceBytes(node.layer_bytes);
  }
  if (AlignUp(node.scratch_bytes) > needs_.scratch) needs_.scratch = AlignUp(node.scratch_bytes);
  const uint64_t work = context.Work();
  work_ = SaturatingAdd(work_, work);
  if (work > largest_work_) {
    largest_work_ = work;
    largest_op_ = op.name()->c_str();
  }
  if (context.bound_tokens() < bound_.tokens) bound_ = {context.bound_tokens(), op.name()->c_str()};
  return Ok();
}

// A value lives from the op that writes it to the last that reads it; inputs from the start, outputs to the end.
Status Program::PlanValues() {
  const uint32_t last = static_cast<uint32_t>(nodes_.size());
  for (uint32_t i = 0; i < values_.size(); ++i) {
    const format::Value& value = *graph().values()->Get(i);
    values_[i].bytes = uint64_t{value.width()} * sizeof(float) * limits_.MaxRows(Axis::Of(value)) + kRedZone;
    values_[i].first = 0;
    values_[i].last = 0;
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const format::Op& op = *graph().ops()->Get(i);
    for (uint32_t j = 0; j < Count(op.inputs()); ++j) values_[op.inputs()->Get(j)->value()].last = i;
    for (uint32_t j = 0; j < Count(op.outputs()); ++j) {
      const uint32_t output = op.outputs()->Get(j);
      values_[output].first = i;
      values_[output].last = i;
      nodes_[i].serves_outputs = graph().values()->Get(output)->time() == format::Time::Outputs;
    }
  }
  for (const uint32_t output : *graph().outputs()) values_[output].last = last;
  TARN_ASSIGN_OR_RETURN(const uint64_t planned, PlanArena(values_));
  // Dense kernels may read past the last row; the arena's last value must not be the block's last byte.
  needs_.arena = AlignUp(planned + kDenseOverread);
  return Ok();
}

TokenWork Program::work() const {
  const uint64_t tokens = uint64_t{limits_.batch} * limits_.max_chunk;
  const auto share = [&](uint64_t work) { return work == UINT64_MAX ? work : work / tokens; };
  return {share(work_), share(largest_work_), largest_op_};
}

Status Program::Bind(Bump& bump) {
  TARN_RETURN_IF_ERROR(CreateDense(bump));
  for (Node& node : nodes_) {
    if (node.constant_bytes > 0) node.op->FillConstants(static_cast<uint8_t*>(bump.Take(node.constant_bytes)));
  }
  return Ok();
}

void Program::Attach(uint8_t* arena, uint8_t* scratch) {
  arena_ = arena;
  scratch_ = scratch;
  BindOperands();
}

Status Program::CreateDense(Bump& bump) {
  for (Node& node : nodes_) {
    if (!node.has_dense) continue;
    const Span<uint8_t> memory(static_cast<uint8_t*>(bump.Take(node.layer_bytes)), static_cast<size_t>(node.layer_bytes));
    TARN_ASSIGN_OR_RETURN(node.dense,
                          node.dense_backend->create(node.dense_spec, environment_.packed->Find(node.dense_spec), memory));
  }
  return Ok();
}

void Program::BindOperands() {
  const auto operand = [&](uint32_t value, uint32_t column) {
    return Operand{arena_ + values_[value].offset + column * sizeof(float), graph().values()->Get(value)->width()};
  };
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const format::Op& op = *graph().ops()->Get(i);
    for (uint32_t j = 0; j < nodes_[i].inputs.size(); ++j) {
      nodes_[i].inputs[j] = operand(op.inputs()->Get(j)->value(), op.inputs()->Get(j)->begin());
    }
    for (uint32_t j = 0; j < nodes_[i].outputs.size(); ++j) nodes_[i].outputs[j] = operand(op.outputs()->Get(j), 0);
  }
}

void Program::FillContext(RunContext* context) const {
  context->batch = context->sequences.size();
  context->token_rows = 0;
  for (const RunSequence& sequence : context->sequences) context->token_rows += sequence.tokens;
  context->beams = limits_.beams;
  context->first_position = environment_.model->graph().first_position();
  context->kernels = environment_.kernels;
}

Status Program::Run(RunContext context) {
  context.tokens = context.sequences[0].tokens;
  return RunAll(context, {&Program::RunNode, nullptr});
}

Status Program::RunAll(RunContext context, const Runner& runner) {
  FillContext(&context);
  if (kPoisons) OpenRun(context);
  const Status status = RunNodes(&context, runner);
  if (kPoisons) CloseRun(context);
  return status;
}

Status Program::RunNodes(RunContext* of_run, const Runner& runner) {
  RunContext& context = *of_run;
  for (Node& node : nodes_) {
    if (node.serves_outputs && context.output_rows == 0) continue;
    context.inputs = node.inputs;
    context.outputs = node.outputs;
    context.states = node.states;
    context.scratch = {scratch_, static_cast<size_t>(node.scratch_bytes)};
    context.dense = node.dense;
    context.dense_backend = node.dense_backend;
    if (kPoisons) OpenNode(node, context);
    TARN_RETURN_IF_ERROR((this->*runner.run)(node, context, runner.log));
    if (kPoisons) CloseNode(node);
    if (context.cancelled()) {
      return Error(TARN_CANCELLED, "cancelled at op '%s'",
                   graph().ops()->Get(static_cast<uint32_t>(&node - nodes_.data()))->name()->c_str());
    }
  }
  return Ok();
}

void Program::OpenInputs() const {
  for (uint32_t i = 0; i < graph().num_inputs(); ++i) Unpoison(arena_ + values_[i].offset, values_[i].bytes - kRedZone);
}

void Program::OpenRun(const RunContext& context) const {
  Poison(arena_, needs_.arena);
  Poison(scratch_, needs_.scratch);
  for (uint32_t i = 0; i < graph().num_inputs(); ++i) OpenValue(i, context);
}

void Program::OpenNode(const Node& node, const RunContext& context) const {
  const format::Op& op = *graph().ops()->Get(static_cast<uint32_t>(&node - nodes_.data()));
  for (uint32_t i = 0; i < Count(op.outputs()); ++i) OpenValue(op.outputs()->Get(i), context);
  // A dense layer gets its scratch in one piece; the other ops open what they take.
  if (node.has_dense) Unpoison(scratch_, node.scratch_bytes);
}

void Program::CloseNode(const Node& node) const {
  const uint32_t index = static_cast<uint32_t>(&node - nodes_.data());
  const format::Op& op = *graph().ops()->Get(index);
  const auto close = [&](uint32_t value) {
    if (values_[value].last == index) Poison(arena_ + values_[value].offset, values_[value].bytes);
  };
  for (uint32_t i = 0; i < Count(op.inputs()); ++i) close(op.inputs()->Get(i)->value());
  for (uint32_t i = 0; i < Count(op.outputs()); ++i) close(op.outputs()->Get(i));
  Poison(scratch_, node.scratch_bytes);
}

void Program::CloseRun(const RunContext& context) const {
  Poison(arena_, needs_.arena);
  Poison(scratch_, needs_.scratch);
  for (const uint32_t output : *graph().outputs()) OpenValue(output, context);
}

void Program::OpenValue(uint32_t index, const RunContext& context) const {
  const format::Value& value = *graph().values()->Get(index);
  Unpoison(arena_ + values_[index].offset, uint64_t{value.width()} * sizeof(float) * context.rows(Axis::Of(value)));
}

Status Program::RunNode(Node& node, const RunContext& context, StepLog*) {
  if (!profiled_) return node.op->Run(context);
  const uint64_t start = MonotonicNs();
  Status status = node.op->Run(context);
  node.ns += MonotonicNs() - start;
  ++node.runs;
  return status;
}

void Program::Profile(bool on) {
  profiled_ = on;
  if (!on) return;
  for (Node& node : nodes_) node.runs = node.ns = 0;
}

OpTime Program::op_time(uint32_t index) const {
  const format::Op& op = *graph().ops()->Get(index);
  return {op.name()->c_str(), FindOpKind(op.attributes_type())->name, nodes_[index].runs, nodes_[index].ns};
}

}  // namespace tarn
