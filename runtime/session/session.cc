#include "runtime/session/session.h"

#include <cstring>
#include <new>

#include "runtime/core/arith.h"

namespace tarn {
namespace {

// Far above any use, and low enough that no product of them overflows.
constexpr uint32_t kMaxBatch = 1u << 12;
constexpr uint32_t kMaxChunk = 1u << 16;
constexpr uint32_t kMaxThreads = 256;

Status CheckLimit(const char* name, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s is %u, 1 to %u wanted", name, value, most);
}

Status CheckLimits(const Limits& limits) {
  TARN_RETURN_IF_ERROR(CheckLimit("batch", limits.batch, kMaxBatch));
  TARN_RETURN_IF_ERROR(CheckLimit("max_chunk", limits.max_tokens, kMaxChunk));
  TARN_RETURN_IF_ERROR(CheckLimit("max_logits_rows", limits.max_output_rows, limits.max_tokens));
  return CheckLimit("threads", limits.threads, kMaxThreads);
}

}  // namespace

Result<ProgramBytes> Session::Measure(const LoadedModel& model, const Limits& limits) {
  TARN_RETURN_IF_ERROR(CheckLimits(limits));
  TARN_ASSIGN_OR_RETURN(ProgramBytes bytes, Program::Measure(model.environment(), limits));
  bytes.program += AlignUp(sizeof(Session));
  bytes.total += AlignUp(sizeof(Session));
  return bytes;
}

Result<Session*> Session::Create(const LoadedModel& model, const Limits& limits, Span<uint8_t> block) {
  TARN_RETURN_IF_ERROR(CheckLimits(limits));
  Block own_block;
  if (block.data() == nullptr) {
    TARN_ASSIGN_OR_RETURN(const ProgramBytes bytes, Measure(model, limits));
    TARN_ASSIGN_OR_RETURN(own_block, Block::Allocate(model.allocator(), bytes.total, "session"));
    block = own_block.bytes();
  }
  if (reinterpret_cast<uintptr_t>(block.data()) % kAlignment != 0) {
    return Error(TARN_INVALID_ARGUMENT, "session block is not aligned to %zu bytes", kAlignment);
  }
  const size_t header = static_cast<size_t>(AlignUp(sizeof(Session)));
  const size_t ahead = header < block.size() ? header : block.size();
  TARN_ASSIGN_OR_RETURN(ThreadPool threads, ThreadPool::Create(limits.threads));
  TARN_ASSIGN_OR_RETURN(Program * program,
                        Program::Create(model.environment(), limits, block.subspan(ahead, block.size() - ahead), ahead));
  Session* session = new (block.data()) Session(model);
  session->program_ = program;
  session->threads_ = std::move(threads);
  session->own_block_ = std::move(own_block);
  return session;
}

void Session::Destroy(Session* session) {
  session->program_->Destroy();
  // The session lies in its own block: take that out before the session ends.
  const Block block = std::move(session->own_block_);
  session->~Session();
}

Result<const float*> Session::Prefill(const int32_t* tokens, size_t count) {
  TARN_RETURN_IF_ERROR(CheckTokens(tokens, count));
  const size_t max_chunk = program_->limits().max_tokens;
  for (size_t begin = 0; begin < count; begin += max_chunk) {
    const bool last = count - begin <= max_chunk;
    const size_t chunk = last ? count - begin : max_chunk;
    TARN_RETURN_IF_ERROR(RunChunk(tokens, count, begin, chunk, /*output_rows=*/last ? 1 : 0));
  }
  return reinterpret_cast<const float*>(program_->output(0));
}

Result<const float*> Session::Score(const int32_t* tokens, size_t count) {
  const Limits& limits = program_->limits();
  if (count > limits.max_tokens || count > limits.max_output_rows) {
    return Error(TARN_INVALID_ARGUMENT, "%zu tokens to score, the session was created for %u (max_chunk) and %u (max_logits_rows)",
                 count, limits.max_tokens, limits.max_output_rows);
  }
  TARN_RETURN_IF_ERROR(CheckTokens(tokens, count));
  TARN_RETURN_IF_ERROR(RunChunk(tokens, count, 0, count, count));
  return reinterpret_cast<const float*>(program_->output(0));
}

Status Session::CheckTokens(const int32_t* tokens, size_t count) const {
  if (count == 0) return Error(TARN_INVALID_ARGUMENT, "count is 0, at least one token wanted");
  const TokenBound& bound = program_->bound();
  const uint64_t seen = program_->tokens_seen();
  if (bound.op != nullptr && count > bound.tokens - seen) {
    return Error(TARN_CONTEXT_FULL, "op '%s' holds %llu tokens from a reset on: %llu are used, %zu more wanted", bound.op,
                 static_cast<unsigned long long>(bound.tokens), static_cast<unsigned long long>(seen), count);
  }
  const uint32_t vocab = model_.model().graph().vocab_size();
  for (size_t i = 0; i < count * program_->limits().batch; ++i) {
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= vocab) {
      return Error(TARN_INVALID_ARGUMENT, "token %zu is %d, 0 to %u wanted", i, tokens[i], vocab - 1);
    }
  }
  return Ok();
}

Status Session::RunChunk(const int32_t* tokens, size_t count, size_t begin, size_t chunk, size_t output_rows) {
  int32_t* ids = reinterpret_cast<int32_t*>(program_->input(0));
  for (size_t sequence = 0; sequence < program_->limits().batch; ++sequence) {
    std::memcpy(ids + sequence * chunk, tokens + sequence * count + begin, chunk * sizeof(int32_t));
  }
  return program_->Run(chunk, output_rows, threads_);
}

}  // namespace tarn
