#include "runtime/interpreter/program.h"

#include <chrono>
#include <cstring>
#include <new>

#include "runtime/core/arith.h"
#include "runtime/interpreter/packed_weights.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

// Before the states: the count of tokens since the reset, so that zeroing the state resets everything.
constexpr uint64_t kCounterBytes = kAlignment;

template <typename T>
Span<T> TakeArray(Bump& bump, size_t count) {
  T* array = static_cast<T*>(bump.Take(count * sizeof(T)));
  for (size_t i = 0; array != nullptr && i < count; ++i) new (&array[i]) T();
  return {array, array == nullptr ? 0 : count};
}

template <typename T>
uint32_t Count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

}  // namespace

Program* Program::Build(const Environment& environment, const Limits& limits, Bump& bump) {
  const Model& model = *environment.model;
  const format::Program& graph = *model.program(Stage::kDecode);
  void* place = bump.Take(sizeof(Program));
  const uint32_t ops = graph.ops()->size();
  Span<Node> nodes = TakeArray<Node>(bump, ops);
  Span<PlannedBuffer> values = TakeArray<PlannedBuffer>(bump, graph.values()->size());
  Span<StateBuffer> states = TakeArray<StateBuffer>(bump, model.graph().states()->size());
  uint32_t next_state = 0;  // states are numbered in the order of their ops
  for (uint32_t i = 0; i < ops; ++i) {
    const format::Op& op = *graph.ops()->Get(i);
    const OpKind& kind = FindOpKind(op.attributes_type());
    void* memory = bump.Take(kind.bytes);
    Span<Operand> inputs = TakeArray<Operand>(bump, Count(op.inputs()));
    Span<Operand> outputs = TakeArray<Operand>(bump, Count(op.outputs()));
    if (nodes.empty()) continue;
    Node& node = nodes[i];
    node.op = kind.construct(memory);
    node.inputs = inputs;
    node.outputs = outputs;
    node.states = Span<const StateBuffer>(states.data() + next_state, Count(op.states()));
    next_state += Count(op.states());
  }
  if (place == nullptr || nodes.empty()) return nullptr;
  Program* program = new (place) Program(environment, limits);
  program->nodes_ = nodes;
  program->values_ = values;
  program->states_ = states;
  return program;
}

Result<Program*> Program::DraftIn(const Environment& environment, const Limits& limits, Bump& bump) {
  Program* program = Build(environment, limits, bump);
  TARN_RETURN_IF_ERROR(program->Prepare());
  TARN_RETURN_IF_ERROR(program->AddUp(bump.used()));
  return program;
}

Result<Block> Program::Draft(const Environment& environment, const Limits& limits) {
  Bump count;
  Build(environment, limits, count);
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(environment.allocator, count.used(), "draft of the program"));
  Bump bump(block.bytes());
  TARN_RETURN_IF_ERROR(DraftIn(environment, limits, bump).status());
  return block;
}

Result<ProgramBytes> Program::Measure(const Environment& environment, const Limits& limits) {
  TARN_ASSIGN_OR_RETURN(const Block draft, Draft(environment, limits));
  return In(draft)->bytes_;
}

Result<TokenBound> Program::Bound(const Environment& environment) {
  TARN_ASSIGN_OR_RETURN(const Block draft, Draft(environment, Limits{1, 1, 1, 1}));
  return In(draft)->bound_;
}

Result<Program*> Program::Create(const Environment& environment, const Limits& limits, Span<uint8_t> block, uint64_t ahead) {
  Bump count;
  Build(environment, limits, count);
  Bump bump(block);
  ProgramBytes bytes{};
  Program* program = nullptr;
  if (count.used() <= block.size()) {
    TARN_ASSIGN_OR_RETURN(program, DraftIn(environment, limits, bump));
    bytes = program->bytes_;
  } else {
    TARN_ASSIGN_OR_RETURN(bytes, Measure(environment, limits));
  }
  if (block.size() < bytes.total) {
    return Error(TARN_BUFFER_TOO_SMALL, "session block has %llu bytes, %llu are needed",
                 static_cast<unsigned long long>(block.size() + ahead), static_cast<unsigned long long>(bytes.total + ahead));
  }
  const Status status = program->Bind(bump);
  if (!status.ok()) {
    program->Destroy();
    return status;
  }
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
    TARN_RETURN_IF_ERROR(PrepareNode(i).In("op '%s'", environment_.model->program(Stage::kDecode)->ops()->Get(i)->name()->c_str()));
  }
  TARN_RETURN_IF_ERROR(PlanStates());
  return PlanValues();
}

Status Program::PrepareNode(uint32_t index) {
  const format::Op& op = *environment_.model->program(Stage::kDecode)->ops()->Get(index);
  Node& node = nodes_[index];
  PrepareContext context(*environment_.model, Stage::kDecode, op, limits_, *environment_.kernels);
  TARN_RETURN_IF_ERROR(node.op->Prepare(context));
  uint64_t scratch = context.scratch_bytes();
  node.constant_bytes = context.constant_bytes();
  if (context.dense() != nullptr) {
    node.has_dense = true;
    node.dense_spec = *context.dense();
    node.dense_backend = environment_.dense->takes(node.dense_spec) ? environment_.dense : &PortableDense();
    TARN_ASSIGN_OR_RETURN(node.dense_bytes, node.dense_backend->measure(node.dense_spec));
    if (node.dense_bytes.scratch > scratch) scratch = node.dense_bytes.scratch;
    dense_bytes_ += AlignUp(node.dense_bytes.layer);
  }
  if (AlignUp(scratch) > bytes_.scratch) bytes_.scratch = AlignUp(scratch);
  if (context.bound_tokens() < bound_.tokens) bound_ = {context.bound_tokens(), op.name()->c_str()};
  return Ok();
}

Status Program::PlanStates() {
  bytes_.state = kCounterBytes;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    const StateView view = environment_.model->state(i);
    states_[i].bytes_per_sequence = view.data_bytes;
    uint64_t bytes = 0;
    if (!CheckedMul(view.data_bytes, limits_.batch, &bytes) || !CheckedAdd(bytes_.state, AlignUp(bytes), &bytes_.state)) {
      return Error(TARN_OUT_OF_MEMORY, "state '%s' for %u sequences does not fit an address space", view.name, limits_.batch);
    }
  }
  return Ok();
}

// A value lives from the op that writes it to the last that reads it; inputs from the start, outputs to the end.
Status Program::PlanValues() {
  const format::Program& graph = *environment_.model->program(Stage::kDecode);
  const uint32_t last = static_cast<uint32_t>(nodes_.size());
  for (uint32_t i = 0; i < values_.size(); ++i) {
    const format::Value& value = *graph.values()->Get(i);
    values_[i].bytes = uint64_t{value.width()} * sizeof(float) * limits_.MaxRows(Axis::Of(value));
    values_[i].first = 0;
    values_[i].last = 0;
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const format::Op& op = *graph.ops()->Get(i);
    for (uint32_t j = 0; j < Count(op.inputs()); ++j) values_[op.inputs()->Get(j)->value()].last = i;
    for (uint32_t j = 0; j < Count(op.outputs()); ++j) {
      const uint32_t output = op.outputs()->Get(j);
      values_[output].first = i;
      values_[output].last = i;
      nodes_[i].serves_outputs = graph.values()->Get(output)->time() == format::Time::Outputs;
    }
  }
  for (const uint32_t output : *graph.outputs()) values_[output].last = last;
  TARN_ASSIGN_OR_RETURN(const uint64_t planned, PlanArena(values_));
  // Dense kernels may read past the last row; the arena's last value must not be the block's last byte.
  bytes_.arena = AlignUp(planned + kDenseOverread);
  return Ok();
}

// `built_bytes` are taken; what Bind() will take comes on top.
Status Program::AddUp(uint64_t built_bytes) {
  bytes_.program = built_bytes + dense_bytes_;
  for (const Node& node : nodes_) bytes_.program += AlignUp(node.constant_bytes);
  uint64_t sum = bytes_.program;
  if (!CheckedAdd(sum, bytes_.state, &sum) || !CheckedAdd(sum, bytes_.arena, &sum) || !CheckedAdd(sum, bytes_.scratch, &sum) ||
      sum > SIZE_MAX) {
    return Error(TARN_OUT_OF_MEMORY, "a session of this model does not fit an address space");
  }
  bytes_.total = sum;
  return Ok();
}

Status Program::Bind(Bump& bump) {
  TARN_RETURN_IF_ERROR(CreateDense(bump));
  for (Node& node : nodes_) {
    if (node.constant_bytes > 0) node.op->FillConstants(static_cast<uint8_t*>(bump.Take(node.constant_bytes)));
  }
  state_ = {static_cast<uint8_t*>(bump.Take(bytes_.state)), static_cast<size_t>(bytes_.state)};
  uint8_t* next = state_.data() + kCounterBytes;
  for (StateBuffer& state : states_) {
    state.data = next;
    next += AlignUp(state.bytes_per_sequence * limits_.batch);
  }
  tokens_seen_ = reinterpret_cast<uint64_t*>(state_.data());
  arena_ = static_cast<uint8_t*>(bump.Take(bytes_.arena));
  scratch_ = static_cast<uint8_t*>(bump.Take(bytes_.scratch));
  if (bump.used() != bytes_.total) {
    return Error(TARN_INTERNAL, "session took %llu bytes, %llu were measured", static_cast<unsigned long long>(bump.used()),
                 static_cast<unsigned long long>(bytes_.total));
  }
  // Touches every page once, so that the resident memory does not grow later.
  std::memset(arena_, 0, static_cast<size_t>(bytes_.arena));
  std::memset(scratch_, 0, static_cast<size_t>(bytes_.scratch));
  BindOperands(arena_);
  Reset();
  return Ok();
}

Status Program::CreateDense(Bump& bump) {
  for (Node& node : nodes_) {
    if (!node.has_dense) continue;
    const Span<uint8_t> memory(static_cast<uint8_t*>(bump.Take(node.dense_bytes.layer)),
                               static_cast<size_t>(node.dense_bytes.layer));
    TARN_ASSIGN_OR_RETURN(node.dense,
                          node.dense_backend->create(node.dense_spec, environment_.packed->Find(node.dense_spec), memory));
  }
  return Ok();
}

void Program::BindOperands(uint8_t* arena) {
  const format::Program& graph = *environment_.model->program(Stage::kDecode);
  const auto operand = [&](uint32_t value, uint32_t column) {
    return Operand{arena + values_[value].offset + column * sizeof(float), graph.values()->Get(value)->width()};
  };
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const format::Op& op = *graph.ops()->Get(i);
    for (uint32_t j = 0; j < nodes_[i].inputs.size(); ++j) {
      nodes_[i].inputs[j] = operand(op.inputs()->Get(j)->value(), op.inputs()->Get(j)->begin());
    }
    for (uint32_t j = 0; j < nodes_[i].outputs.size(); ++j) nodes_[i].outputs[j] = operand(op.outputs()->Get(j), 0);
  }
}

Status Program::Run(size_t tokens, size_t output_rows, const ThreadPool& threads) {
  RunContext context{};
  context.batch = limits_.batch;
  context.tokens = tokens;
  context.output_rows = output_rows;
  context.tokens_seen = *tokens_seen_;
  context.first_position = environment_.model->graph().first_position();
  context.scratch = scratch_;
  context.kernels = environment_.kernels;
  context.threads = &threads;
  for (Node& node : nodes_) {
    if (node.serves_outputs && output_rows == 0) continue;
    context.inputs = node.inputs;
    context.outputs = node.outputs;
    context.states = node.states;
    context.dense = node.dense;
    context.dense_backend = node.dense_backend;
    TARN_RETURN_IF_ERROR(profiled_ ? RunProfiled(node, context) : node.op->Run(context));
  }
  *tokens_seen_ += tokens;
  return Ok();
}

Status Program::RunProfiled(Node& node, const RunContext& context) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Status status = node.op->Run(context);
  node.ns += static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
  ++node.runs;
  return status;
}

void Program::Profile(bool on) {
  profiled_ = on;
  if (!on) return;
  for (Node& node : nodes_) node.runs = node.ns = 0;
}

OpTime Program::op_time(uint32_t index) const {
  const format::Op& op = *environment_.model->program(Stage::kDecode)->ops()->Get(index);
  return {op.name()->c_str(), FindOpKind(op.attributes_type()).name, nodes_[index].runs, nodes_[index].ns};
}

void Program::Reset() { std::memset(state_.data(), 0, state_.size()); }

uint8_t* Program::input(uint32_t index) const { return arena_ + values_[index].offset; }

const uint8_t* Program::output(uint32_t index) const {
  return arena_ + values_[environment_.model->program(Stage::kDecode)->outputs()->Get(index)].offset;
}

}  // namespace tarn
