#include "runtime/session/session.h"

#include <cstring>
#include <new>

#include "core/arith.h"
#include "runtime/platform/huge_pages.h"
#include "runtime/session/snapshot.h"

namespace tarn {
namespace {

// Far above any use, and low enough that no product of them overflows.
constexpr uint32_t kMaxBatch = 1u << 12;
constexpr uint32_t kMaxChunk = 1u << 16;
constexpr uint32_t kMaxSource = 1u << 16;
constexpr uint32_t kMaxThreads = 256;

Status CheckLimit(const char* name, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s is %llu, %llu to %llu expected", name, static_cast<unsigned long long>(value),
               static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
}

Status CheckSourceLimit(const LoadedModel& model, uint32_t max_source) {
  if (model.model().program(Stage::kEncode) == nullptr) {
    if (max_source == 0) return Ok();
    return Error(TARN_INVALID_ARGUMENT, "max_source is %u, but a model of task %s has no sources: 0 expected", max_source,
                 TaskName(model.model().task()));
  }
  const TokenBound& bound = model.bound(Stage::kEncode);
  if (max_source > bound.tokens) {
    return Error(TARN_INVALID_ARGUMENT, "max_source is %u, op '%s' holds %llu tokens of a source", max_source, bound.op,
                 static_cast<unsigned long long>(bound.tokens));
  }
  return CheckLimit("max_source", max_source, 1, kMaxSource);
}

Status CheckLimits(const LoadedModel& model, const Limits& limits) {
  TARN_RETURN_IF_ERROR(CheckLimit("beams", limits.beams, 1, model.model().program(Stage::kDecode) == nullptr ? 1 : kMaxBatch));
  TARN_RETURN_IF_ERROR(CheckLimit("batch * beams", limits.batch, 1, kMaxBatch));
  TARN_RETURN_IF_ERROR(CheckSourceLimit(model, limits.max_source));
  TARN_RETURN_IF_ERROR(CheckLimit("max_chunk", limits.max_chunk, 1, kMaxChunk));
  const bool fills = model.model().task() == format::Task::MaskedLm;
  if (fills) TARN_RETURN_IF_ERROR(CheckLimit("batch of a masked language model", limits.batch, 1, 1));
  TARN_RETURN_IF_ERROR(CheckLimit("max_logits_rows", limits.max_output_rows, 1, fills ? limits.max_source : limits.max_chunk));
  return CheckLimit("threads", limits.threads, 1, kMaxThreads);
}

// What lies before the program in a session's block: the session itself and its pool of threads.
uint64_t HeaderBytes(const Limits& limits) { return AlignUp(sizeof(Session)) + ThreadPool::Bytes(limits.threads); }

}  // namespace

Status CheckIds(const int32_t* tokens, size_t count, uint32_t vocab) {
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= vocab) {
      return Error(TARN_INVALID_ARGUMENT, "token %zu is %d, 0 to %u expected", i, tokens[i], vocab - 1);
    }
  }
  return Ok();
}

Result<ProgramBytes> Session::Measure(const LoadedModel& model, const Limits& limits) {
  TARN_RETURN_IF_ERROR(CheckLimits(model, limits));
  TARN_ASSIGN_OR_RETURN(ProgramBytes bytes, Instance::Measure(model.environment(), limits));
  bytes.program += HeaderBytes(limits);
  bytes.total += HeaderBytes(limits);
  return bytes;
}

Result<Session*> Session::Create(const LoadedModel& model, const Limits& limits, Span<uint8_t> block) {
  TARN_RETURN_IF_ERROR(CheckLimits(model, limits));
  TARN_RETURN_IF_ERROR(CheckBlock(block));
  const size_t header = static_cast<size_t>(HeaderBytes(limits));
  Block own_block;
  if (block.size() < header) {  // there is none, or it is far too small
    TARN_ASSIGN_OR_RETURN(const ProgramBytes bytes, Measure(model, limits));
    if (block.data() != nullptr) return Instance::BlockTooSmall(block.size(), bytes.total);
    TARN_ASSIGN_OR_RETURN(own_block, Block::Allocate(model.allocator(), bytes.total, "session"));
    block = own_block.bytes();
    AdviseHugePages(block);
  }
  TARN_ASSIGN_OR_RETURN(Instance * instance,
                        Instance::Create(model.environment(), limits, block.subspan(header, block.size() - header), header));
  const size_t pool = static_cast<size_t>(AlignUp(sizeof(Session)));
  Result<ThreadPool> threads = ThreadPool::Create(limits.threads, block.subspan(pool, header - pool));
  if (!threads.ok()) {
    instance->Destroy();
    return threads.status();
  }
  Session* session = new (block.data()) Session(model);
  session->instance_ = instance;
  session->threads_ = std::move(threads.value());
  session->own_block_ = std::move(own_block);
  return session;
}

void Session::Destroy(Session* session) {
  session->instance_->Destroy();
  // The session lies in its own block: take that out before the session ends.
  const Block block = std::move(session->own_block_);
  session->~Session();
}

Status Session::ExpectTask(format::Task task) const {
  const format::Task found = model_.model().task();
  if (found == task) return Ok();
  return Error(TARN_UNSUPPORTED, "the model's task is %s, the call is for %s", TaskName(found), TaskName(task));
}

Status Session::TakeCancellation() {
  Cancellation& cancellation = instance_->cancellation();
  if (!cancellation.requested()) return Ok();
  cancellation.Withdraw();
  return Error(TARN_CANCELLED, "cancelled");
}

Status Session::MakeWhole() const {
  if (instance_->is_whole()) return Ok();
  if (instance_->steps_wait()) return instance_->TakeSteps(threads_);
  return Error(TARN_INVALID_ARGUMENT, "the last call was broken off in the middle of a chunk: reset, restore or encode first");
}

Status Session::MakeWhole(uint32_t sequence) const {
  if (instance_->is_whole(sequence)) return Ok();
  if (instance_->steps_wait()) return instance_->TakeSteps(threads_);
  return Error(TARN_INVALID_ARGUMENT, "broken off in the middle of a chunk: reset or restore it first").In("sequence %u", sequence);
}

Status Session::ExpectOwnSource() const {
  const uint32_t beams = instance_->limits().beams;
  if (instance_->source_tokens().empty() || beams == 1) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "beams is %u, 1 expected: sequences that decode from one source go on with it", beams);
}

Status Session::ExpectLockstep() const {
  if (instance_->in_lockstep()) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "sequences have seen different numbers of tokens, the same expected");
}

// ---- decode ----

Result<const float*> Session::Prefill(const int32_t* tokens, size_t count, const Progress& progress) {
  TARN_RETURN_IF_ERROR(CheckSequences(tokens, count));
  const size_t max_chunk = instance_->limits().max_chunk;
  for (size_t begin = 0; begin < count; begin += max_chunk) {
    TARN_RETURN_IF_ERROR(TakeCancellation().In("%zu of %zu tokens read", begin, count));
    const bool last = count - begin <= max_chunk;
    const size_t chunk = last ? count - begin : max_chunk;
    TARN_RETURN_IF_ERROR(RunChunk(tokens, count, begin, chunk, /*output_rows=*/last ? 1 : 0));
    if (progress.go_on == nullptr) continue;
    if (progress.go_on(progress.context, begin + chunk, count) == 0 && !last) {
      return Error(TARN_CANCELLED, "%zu of %zu tokens read: the caller's progress function stopped it", begin + chunk, count);
    }
  }
  return Logits(Stage::kDecode);
}

Result<const float*> Session::Score(const int32_t* tokens, size_t count) {
  const Limits& limits = instance_->limits();
  if (count > limits.max_chunk || count > limits.max_output_rows) {
    return Error(TARN_INVALID_ARGUMENT, "%zu tokens to score, the session was created for %u (max_chunk) and %u (max_logits_rows)",
                 count, limits.max_chunk, limits.max_output_rows);
  }
  TARN_RETURN_IF_ERROR(CheckSequences(tokens, count));
  TARN_RETURN_IF_ERROR(TakeCancellation());
  TARN_RETURN_IF_ERROR(RunChunk(tokens, count, 0, count, count));
  return Logits(Stage::kDecode);
}

Status Session::ExpectDecoder() const {
  const Model& model = model_.model();
  if (model.program(Stage::kDecode) == nullptr) {
    return Error(TARN_UNSUPPORTED, "a model of task %s takes no sequence token by token", TaskName(model.task()));
  }
  return Ok();
}

Status Session::ExpectSources() const {
  for (const uint32_t length : instance_->source_tokens()) {
    if (length == 0) return Error(TARN_INVALID_ARGUMENT, "there is nothing to decode from: encode the sources first");
  }
  return Ok();
}

Status Session::CheckRoom(uint64_t seen, size_t count) const {
  if (count == 0) return Error(TARN_INVALID_ARGUMENT, "count is 0, at least one token expected");
  const TokenBound& bound = instance_->program(Stage::kDecode)->bound();
  if (bound.op == nullptr || count <= bound.tokens - seen) return Ok();
  return Error(TARN_CONTEXT_FULL, "op '%s' holds %llu tokens from a reset on: %llu are used, %zu more expected", bound.op,
               static_cast<unsigned long long>(bound.tokens), static_cast<unsigned long long>(seen), count);
}

Status Session::CheckSequences(const int32_t* tokens, size_t count) const {
  TARN_RETURN_IF_ERROR(ExpectDecoder());
  TARN_RETURN_IF_ERROR(ExpectSources());
  TARN_RETURN_IF_ERROR(MakeWhole());
  TARN_RETURN_IF_ERROR(CheckRoom(instance_->tokens_seen(), count));
  return CheckIds(tokens, count * instance_->limits().batch, model_.model().vocab_size(Stage::kDecode));
}

Status Session::RunChunk(const int32_t* tokens, size_t count, size_t begin, size_t chunk, size_t output_rows) {
  int32_t* ids = reinterpret_cast<int32_t*>(instance_->input(Stage::kDecode, 0));
  for (size_t sequence = 0; sequence < instance_->limits().batch; ++sequence) {
    std::memcpy(ids + sequence * chunk, tokens + sequence * count + begin, chunk * sizeof(int32_t));
  }
  const Status status = instance_->Decode(chunk, output_rows, threads_);
  if (status.code() == TARN_CANCELLED) instance_->cancellation().Withdraw();
  return status;
}

Status Session::Reorder(const uint32_t* parents) {
  const Limits& limits = instance_->limits();
  TARN_RETURN_IF_ERROR(MakeWhole());
  for (uint32_t i = 0; i < limits.batch; ++i) {
    const uint32_t first = i / limits.beams * limits.beams;
    if (parents[i] < first || parents[i] >= first + limits.beams) {
      return Error(TARN_INVALID_ARGUMENT, "parent of sequence %u is %u, %u to %u expected: those of the same source", i, parents[i],
                   first, first + limits.beams - 1);
    }
  }
  instance_->Reorder(parents);
  return Ok();
}

// ---- encode ----

Status Session::Encode(const int32_t* tokens, size_t stride, const size_t* lengths) {
  TARN_RETURN_IF_ERROR(ExpectTask(format::Task::Seq2Seq));
  TARN_RETURN_IF_ERROR(CheckSources(tokens, stride, lengths));
  TARN_RETURN_IF_ERROR(TakeCancellation());
  instance_->ResetSequences();
  Status status;
  for (size_t source = 0; status.ok() && source < instance_->limits().sources(); ++source) {
    status = EncodeSource(source, tokens + source * stride, lengths[source], {});
  }
  if (!status.ok()) instance_->Reset();
  return status;
}

Result<const float*> Session::Classify(const int32_t* tokens, size_t stride, const size_t* lengths) {
  TARN_RETURN_IF_ERROR(ExpectTask(format::Task::Classification));
  TARN_RETURN_IF_ERROR(CheckSources(tokens, stride, lengths));
  const size_t labels = model_.labels();
  for (size_t source = 0; source < instance_->limits().sources(); ++source) {
    TARN_RETURN_IF_ERROR(EncodeSource(source, tokens + source * stride, lengths[source], {}));
    std::memcpy(instance_->results() + source * labels, Logits(Stage::kEncode), labels * sizeof(float));
  }
  return static_cast<const float*>(instance_->results());
}

Result<const float*> Session::Fill(const int32_t* tokens, size_t count, Span<const uint32_t> positions) {
  TARN_RETURN_IF_ERROR(ExpectTask(format::Task::MaskedLm));
  TARN_RETURN_IF_ERROR(CheckLimit("position_count", positions.size(), 1, instance_->limits().max_output_rows));
  for (const uint32_t position : positions) {
    if (position >= count) return Error(TARN_INVALID_ARGUMENT, "position %u of a source of %zu tokens", position, count);
  }
  TARN_RETURN_IF_ERROR(CheckSource(0, tokens, count));
  TARN_RETURN_IF_ERROR(EncodeSource(0, tokens, count, positions));
  return Logits(Stage::kEncode);
}

Status Session::CheckSources(const int32_t* tokens, size_t stride, const size_t* lengths) const {
  const size_t sources = instance_->limits().sources();
  for (size_t source = 0; source < sources; ++source) {
    if (lengths[source] > stride) {
      return Error(TARN_INVALID_ARGUMENT, "source %zu has %zu tokens in rows of %zu", source, lengths[source], stride);
    }
    TARN_RETURN_IF_ERROR(CheckSource(source, tokens + source * stride, lengths[source]));
  }
  return Ok();
}

Status Session::CheckSource(size_t source, const int32_t* tokens, size_t count) const {
  const uint32_t max_source = instance_->limits().max_source;
  if (count < 1 || count > max_source) {
    return Error(TARN_INVALID_ARGUMENT,
                 "source %zu has %zu tokens, 1 to %u expected: the session was created for that (max_source)", source, count,
                 max_source);
  }
  return CheckIds(tokens, count, model_.model().vocab_size(Stage::kEncode)).In("source %zu", source);
}

Status Session::EncodeSource(size_t source, const int32_t* tokens, size_t count, Span<const uint32_t> output_tokens) {
  TARN_RETURN_IF_ERROR(TakeCancellation().In("source %zu", source));
  std::memcpy(instance_->input(Stage::kEncode, 0), tokens, count * sizeof(int32_t));
  const Status status = instance_->Encode(source, count, output_tokens, threads_);
  if (status.code() == TARN_CANCELLED) instance_->cancellation().Withdraw();
  return status;
}

// ---- snapshots ----

uint64_t Session::SnapshotBytes(bool is_compact) const {
  if (instance_->steps_wait() && !MakeWhole().ok()) return 0;
  return tarn::SnapshotBytes(model_, SnapshotScope::All(*instance_), {{}, is_compact}).value();
}

Status Session::Save(Span<uint8_t> snapshot, bool is_compact) const {
  TARN_RETURN_IF_ERROR(MakeWhole());
  return SaveSnapshot(model_, SnapshotScope::All(*instance_), {{}, is_compact}, snapshot);
}

Status Session::Restore(Span<const uint8_t> snapshot) { return RestoreDelta({}, snapshot); }

Result<uint64_t> Session::DeltaBytes(Span<const uint8_t> base) const {
  if (instance_->steps_wait()) TARN_RETURN_IF_ERROR(MakeWhole());
  return tarn::SnapshotBytes(model_, SnapshotScope::All(*instance_), {base});
}

Status Session::SaveDelta(Span<const uint8_t> base, Span<uint8_t> delta) const {
  TARN_RETURN_IF_ERROR(MakeWhole());
  return SaveSnapshot(model_, SnapshotScope::All(*instance_), {base}, delta);
}

Status Session::RestoreDelta(Span<const uint8_t> base, Span<const uint8_t> delta) {
  TARN_RETURN_IF_ERROR(RestoreSnapshot(model_, base, delta, SnapshotScope::All(*instance_), instance_));
  instance_->cancellation().Withdraw();
  return Ok();
}

}  // namespace tarn
