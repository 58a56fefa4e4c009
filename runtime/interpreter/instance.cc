#include "runtime/interpreter/instance.h"

#include <cstring>
#include <new>

#include "core/arith.h"
#include "runtime/platform/release_pages.h"

namespace tarn {
namespace {

// Before the states: the progress of the sequences, so that zeroing the state resets everything. With one entry more it pays for
// what a snapshot has besides the states, as its bound in the C API has it.
uint64_t ProgressBytes(size_t sequences) { return AlignUp((sequences + 1) * sizeof(SequenceProgress)); }

uint64_t SourceTokensBytes(size_t sources) { return AlignUp(sources * sizeof(uint32_t)); }

// Sources are encoded one by one.
Limits LimitsOf(Stage stage, Limits limits) {
  if (stage == Stage::kDecode) return limits;
  limits.batch = limits.beams = 1;
  limits.max_chunk = limits.max_source;
  return limits;
}

bool DecodesFromSources(const Model& model) {
  return model.program(Stage::kEncode) != nullptr && model.program(Stage::kDecode) != nullptr;
}

// Of one source: the Fixed row that a classifier ends with; 0 where "encode" ends otherwise.
uint64_t ResultBytes(const Model& model) {
  const format::Program* encode = model.program(Stage::kEncode);
  if (encode == nullptr) return 0;
  const format::Value& output = *encode->values()->Get(encode->outputs()->Get(0));
  return output.time() == format::Time::Fixed ? uint64_t{output.width()} * output.rows() * sizeof(float) : 0;
}

}  // namespace

Instance* Instance::Build(const Environment& environment, const Limits& limits, Bump& bump) {
  const Model& model = *environment.model;
  void* place = bump.Take(sizeof(Instance));
  const Span<StateBuffer> states = TakeArray<StateBuffer>(bump, model.graph().states()->size());
  const Span<Reordering::Move> moves = TakeArray<Reordering::Move>(bump, Reordering::MaxMoves(limits.batch));
  const Span<uint32_t> wanted = TakeArray<uint32_t>(bump, limits.batch);
  const Span<RunSequence> run = TakeArray<RunSequence>(bump, limits.batch);
  Program* programs[std::size(kStages)] = {};
  for (const Stage stage : kStages) {
    if (model.program(stage) == nullptr) continue;
    programs[static_cast<size_t>(stage)] = Program::Build(environment, stage, LimitsOf(stage, limits), states, bump);
  }
  if (place == nullptr || wanted.empty()) return nullptr;
  Instance* instance = new (place) Instance(environment, limits, Reordering(moves, wanted));
  std::memcpy(instance->programs_, programs, sizeof(programs));
  instance->states_ = states;
  instance->run_ = run;
  return instance;
}

Result<Instance*> Instance::DraftIn(const Environment& environment, const Limits& limits, Bump& bump) {
  Instance* instance = Build(environment, limits, bump);
  TARN_RETURN_IF_ERROR(instance->PlanStates());
  for (Program* program : instance->programs_) {
    if (program != nullptr) TARN_RETURN_IF_ERROR(program->Prepare());
  }
  TARN_RETURN_IF_ERROR(instance->AddUp(bump.used()));
  return instance;
}

Result<Block> Instance::DraftInBlock(const Environment& environment, const Limits& limits) {
  Bump count;
  Build(environment, limits, count);
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(environment.allocator, count.used(), "copy of the programs"));
  Bump bump(block.bytes());
  TARN_RETURN_IF_ERROR(DraftIn(environment, limits, bump).status());
  return block;
}

Result<ProgramBytes> Instance::Measure(const Environment& environment, const Limits& limits) {
  TARN_ASSIGN_OR_RETURN(const Block draft, DraftInBlock(environment, limits));
  return In(draft)->bytes_;
}

Result<Instance::Draft> Instance::Draft::Make(const Environment& environment) {
  TARN_ASSIGN_OR_RETURN(Block block, DraftInBlock(environment, kSmallest));
  return Draft(std::move(block));
}

uint64_t Instance::Draft::Bytes(const Environment& environment) {
  Bump count;
  Build(environment, kSmallest, count);
  return count.used();
}

TokenBounds Instance::Draft::bounds() const {
  TokenBounds bounds;
  for (const Stage stage : kStages) {
    const Program* program = instance().program(stage);
    bounds.by_stage[static_cast<size_t>(stage)] = program == nullptr ? TokenBound{UINT64_MAX, nullptr} : program->bound();
  }
  return bounds;
}

Result<TokenWork> Instance::Work(const Environment& environment, uint32_t max_source) {
  Limits limits = kSmallest;
  limits.max_source = max_source;
  TARN_ASSIGN_OR_RETURN(const Block draft, DraftInBlock(environment, limits));
  TokenWork most{0, 0, ""};
  for (const Program* program : In(draft)->programs_) {
    if (program != nullptr && program->work().per_token >= most.per_token) most = program->work();
  }
  return most;
}

Result<Instance*> Instance::Create(const Environment& environment, const Limits& limits, Span<uint8_t> block, uint64_t ahead) {
  Result<Instance*> instance = CreateIn(environment, limits, block, ahead);
  if (!instance.ok()) Unpoison(block.data(), block.size());
  return instance;
}

Status Instance::BlockTooSmall(uint64_t found, uint64_t needed) {
  return Error(TARN_BUFFER_TOO_SMALL, "session block has %llu bytes, %llu are needed", static_cast<unsigned long long>(found),
               static_cast<unsigned long long>(needed));
}

Result<Instance*> Instance::CreateIn(const Environment& environment, const Limits& limits, Span<uint8_t> block, uint64_t ahead) {
  Bump count;
  Build(environment, limits, count);
  Bump bump(block);
  ProgramBytes bytes{};
  Instance* instance = nullptr;
  if (count.used() <= block.size()) {
    TARN_ASSIGN_OR_RETURN(instance, DraftIn(environment, limits, bump));
    bytes = instance->bytes_;
  } else {
    TARN_ASSIGN_OR_RETURN(bytes, Measure(environment, limits));
  }
  if (block.size() < bytes.total) {
    return BlockTooSmall(block.size() + ahead, bytes.total + ahead);
  }
  const Status status = instance->Bind(bump);
  if (!status.ok()) {
    instance->Destroy();
    return status;
  }
  return instance;
}

void Instance::Destroy() {
  for (Program* program : programs_) {
    if (program != nullptr) program->Destroy();
  }
  Unpoison(this, bytes_.total);
}

uint64_t Instance::Owners(uint32_t state) const {
  return environment_.model->state(state).owner == format::Owner::Source ? limits_.sources() : limits_.batch;
}

Status Instance::PlanStates() {
  const Model& model = *environment_.model;
  bytes_.state = ProgressBytes(limits_.batch);
  if (DecodesFromSources(model)) bytes_.state += SourceTokensBytes(limits_.sources());
  for (uint32_t i = 0; i < states_.size(); ++i) {
    const StateView view = model.state(i);
    uint64_t bytes = view.data_bytes;
    bool fits = view.source_axis < 0 || CheckedMul(bytes, limits_.max_source, &bytes);
    states_[i].bytes_per_sequence = bytes;
    fits = fits && CheckedMul(bytes, Owners(i), &bytes) && CheckedAdd(bytes_.state, AlignUp(bytes), &bytes_.state);
    if (!fits) {
      return Error(TARN_OUT_OF_MEMORY, "state '%s' for %u sequences does not fit an address space", view.name, limits_.batch);
    }
  }
  return Ok();
}

// `built_bytes` are taken; what Bind() will take comes on top.
Status Instance::AddUp(uint64_t built_bytes) {
  bytes_.program = built_bytes;
  for (const Program* program : programs_) {
    if (program == nullptr) continue;
    bytes_.program += program->needs().bound;
    if (program->needs().arena > bytes_.arena) bytes_.arena = program->needs().arena;
    if (program->needs().scratch > bytes_.scratch) bytes_.scratch = program->needs().scratch;
  }
  bytes_.arena += AlignUp(ResultBytes(*environment_.model) * limits_.batch);
  uint64_t sum = bytes_.program;
  if (!CheckedAdd(sum, bytes_.state, &sum) || !CheckedAdd(sum, bytes_.arena, &sum) || !CheckedAdd(sum, bytes_.scratch, &sum) ||
      sum > SIZE_MAX) {
    return Error(TARN_OUT_OF_MEMORY, "a session of this model does not fit an address space");
  }
  Bump memory;
  LayMemory(memory);
  bytes_.total = bytes_.program + memory.used();
  bytes_.program =
      bytes_.total - bytes_.state - bytes_.arena - bytes_.scratch;  // red zones, where there are any, are nobody's state
  return Ok();
}

// State, arena and scratch come last in the block, after what the programs take.
Instance::Memory Instance::LayMemory(Bump& bump) {
  Memory memory{};
  memory.progress = bump.Take(ProgressBytes(limits_.batch));
  if (DecodesFromSources(*environment_.model)) memory.source_tokens = bump.Take(SourceTokensBytes(limits_.sources()));
  for (uint32_t i = 0; i < states_.size(); ++i) {
    states_[i].data = static_cast<uint8_t*>(bump.Take(states_[i].bytes_per_sequence * Owners(i)));
  }
  const uint64_t results = AlignUp(ResultBytes(*environment_.model) * limits_.batch);
  memory.arena = bump.Take(bytes_.arena - results);
  if (results > 0) memory.results = bump.Take(results);
  memory.scratch = bump.Take(bytes_.scratch);
  return memory;
}

Status Instance::Bind(Bump& bump) {
  for (Program* program : programs_) {
    if (program != nullptr) TARN_RETURN_IF_ERROR(program->Bind(bump));
  }
  const Memory memory = LayMemory(bump);
  if (bump.used() != bytes_.total) {
    return Error(TARN_INTERNAL, "programs took %llu bytes, %llu were measured", static_cast<unsigned long long>(bump.used()),
                 static_cast<unsigned long long>(bytes_.total));
  }
  progress_ = {static_cast<SequenceProgress*>(memory.progress), limits_.batch};
  if (memory.source_tokens != nullptr) source_tokens_ = {static_cast<uint32_t*>(memory.source_tokens), limits_.sources()};
  results_ = static_cast<float*>(memory.results);
  uint8_t* const arena = static_cast<uint8_t*>(memory.arena);
  working_ = {arena, static_cast<size_t>(reinterpret_cast<uint8_t*>(this) + bytes_.total - arena)};
  // Touches every page once, so that the resident memory does not grow later.
  const uint64_t results = AlignUp(ResultBytes(*environment_.model) * limits_.batch);
  std::memset(memory.arena, 0, static_cast<size_t>(bytes_.arena - results));
  if (results_ != nullptr) std::memset(results_, 0, static_cast<size_t>(results));
  std::memset(memory.scratch, 0, static_cast<size_t>(bytes_.scratch));
  Poison(memory.arena, bytes_.arena - results);
  Poison(memory.scratch, bytes_.scratch);
  for (Program* program : programs_) {
    if (program != nullptr) program->Attach(static_cast<uint8_t*>(memory.arena), static_cast<uint8_t*>(memory.scratch));
  }
  OpenInputs();
  Reset();
  return Ok();
}

// All programs have theirs in one arena: they are open together, between runs.
void Instance::OpenInputs() const {
  if (!kPoisons) return;
  for (const Program* program : programs_) {
    if (program != nullptr) program->OpenInputs();
  }
}

Status Instance::Encode(size_t source, size_t tokens, Span<const uint32_t> output_tokens, const ThreadPool& threads) {
  ForgetSource(source, tokens);
  RunContext context{};
  const RunSequence whole{0, 0, static_cast<uint32_t>(tokens)};
  context.sequences = {&whole, 1};
  context.output_rows = output_tokens.size();
  context.output_tokens = output_tokens.data();
  context.source = source;
  context.threads = &threads;
  context.cancellation = &cancellation_;
  const Status status = programs_[static_cast<size_t>(Stage::kEncode)]->Run(context);
  OpenInputs();
  TARN_RETURN_IF_ERROR(status);
  if (!source_tokens_.empty()) source_tokens_[source] = static_cast<uint32_t>(tokens);
  return Ok();
}

RunContext Instance::DecodeContext(size_t count, size_t output_rows, const ThreadPool& threads) {
  RunContext context{};
  context.sequences = {run_.data(), count};
  context.output_rows = output_rows;
  context.source_tokens = source_tokens_;
  context.threads = &threads;
  uint64_t rows = 0;
  for (RunSequence& sequence : Span<RunSequence>(run_.data(), count)) {
    sequence.tokens_seen = progress_[sequence.number].tokens_seen;
    rows += sequence.tokens;
  }
  const uint64_t work = program(Stage::kDecode)->work().per_token;
  if (work >= kLongRun / rows) context.cancellation = &cancellation_;
  return context;
}

RunContext Instance::DecodeAll(size_t tokens, size_t output_rows, const ThreadPool& threads) {
  for (uint32_t i = 0; i < limits_.batch; ++i) run_[i] = {0, i, static_cast<uint32_t>(tokens)};
  return DecodeContext(limits_.batch, output_rows, threads);
}

Status Instance::Decode(size_t tokens, size_t output_rows, const ThreadPool& threads) {
  return RunDecode(&Program::Run, DecodeAll(tokens, output_rows, threads));
}

Status Instance::RunDecode(Status (Program::*run)(RunContext context), const RunContext& context) {
  for (const RunSequence& sequence : context.sequences) progress_[sequence.number].rest = SequenceProgress::kBrokenOff;
  const Status status = (programs_[static_cast<size_t>(Stage::kDecode)]->*run)(context);
  OpenInputs();
  TARN_RETURN_IF_ERROR(status);
  for (const RunSequence& sequence : context.sequences) {
    progress_[sequence.number] = {sequence.tokens_seen + sequence.tokens, SequenceProgress::kWhole};
  }
  return Ok();
}

void Instance::Reset() {
  for (SequenceProgress& progress : progress_) progress = {};
  for (uint32_t& tokens : source_tokens_) tokens = 0;
  for (uint32_t i = 0; i < states_.size(); ++i) std::memset(states_[i].data, 0, state_bytes(i).size());
}

void Instance::ResetSequences() {
  for (SequenceProgress& progress : progress_) progress = {};
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (environment_.model->state(i).owner == format::Owner::Source) continue;
    std::memset(states_[i].data, 0, state_bytes(i).size());
  }
}

void Instance::ForgetSource(size_t source, size_t tokens) {
  if (source_tokens_.empty()) return;
  const size_t before = source_tokens_[source];
  source_tokens_[source] = 0;
  for (uint32_t i = 0; i < states_.size() && before > tokens; ++i) {
    const StateView view = environment_.model->state(i);
    if (view.source_axis < 0) continue;
    size_t blocks = 1;
    for (int axis = 0; axis < view.source_axis; ++axis) blocks *= view.shape.dims[axis];
    const auto row_bytes = static_cast<size_t>(view.data_bytes / blocks);
    uint8_t* const data = states_[i].data + source * states_[i].bytes_per_sequence;
    for (size_t block = 0; block < blocks; ++block) {
      std::memset(data + (block * limits_.max_source + tokens) * row_bytes, 0, (before - tokens) * row_bytes);
    }
  }
}

bool Instance::is_whole() const {
  for (const SequenceProgress& progress : progress_) {
    if (progress.rest != SequenceProgress::kWhole) return false;
  }
  return true;
}

uint64_t Instance::tokens_seen() const {
  uint64_t most = 0;
  for (const SequenceProgress& progress : progress_) most = progress.tokens_seen > most ? progress.tokens_seen : most;
  return most;
}

bool Instance::in_lockstep() const {
  for (const SequenceProgress& progress : progress_) {
    if (progress.tokens_seen != progress_[0].tokens_seen) return false;
  }
  return true;
}

void Instance::Reorder(const uint32_t* parents) {
  reordering_.Plan(parents);
  reordering_.Apply(reinterpret_cast<uint8_t*>(progress_.data()), sizeof(SequenceProgress));
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (environment_.model->state(i).owner == format::Owner::Source) continue;
    reordering_.Apply(states_[i].data, states_[i].bytes_per_sequence);
  }
}

uint64_t Instance::Trim() {
  uint64_t released = ReleasePages(working_);
  for (uint32_t i = 0; i < state_count(); ++i) released += ReleaseZeroPages(state_bytes(i));
  return released;
}

void Instance::Profile(bool on) {
  for (Program* program : programs_) {
    if (program != nullptr) program->Profile(on);
  }
}

uint32_t Instance::op_count() const {
  uint32_t count = 0;
  for (const Program* program : programs_) count += program == nullptr ? 0 : program->op_count();
  return count;
}

OpTime Instance::op_time(uint32_t index) const {
  const Program* const first = programs_[0];
  if (first == nullptr) return programs_[1]->op_time(index);
  return index < first->op_count() ? first->op_time(index) : programs_[1]->op_time(index - first->op_count());
}

}  // namespace tarn
