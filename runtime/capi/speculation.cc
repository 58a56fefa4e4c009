// C API: speculation. Translation only; the work is in runtime/generation.
#include "runtime/generation/speculation.h"

#include "runtime/capi/handles.h"
#include "tarn/speculation.h"

namespace tarn {
namespace {

constexpr uint32_t kDefaultHistory = 8192;

// A tarn_speculation is a Speculation by another name.
Speculation* Of(tarn_speculation* speculation) { return reinterpret_cast<Speculation*>(speculation); }
const Speculation* Of(const tarn_speculation* speculation) { return reinterpret_cast<const Speculation*>(speculation); }

struct Creation {
  Session* session;
  Picker picker;
  SpeculationConfig config;
  BlockSource memory;
};

Result<Creation> ReadCreation(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* user) {
  if (session == nullptr) return NullArgument("session");
  tarn_speculation_config config = TARN_SPECULATION_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  Creation read{};
  read.session = reinterpret_cast<Session*>(session);
  read.picker = {reinterpret_cast<Sampler*>(sampler), config.pick, config.on_token, config.context};
  read.config = {config.max_draft, config.history_tokens == 0 ? kDefaultHistory : config.history_tokens,
                 reinterpret_cast<Session*>(config.draft), config.row_cost};
  read.memory = BlockSourceFrom(config);
  return read;
}

Status MeasureSpeculation(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* config,
                          uint64_t* size_bytes) {
  TARN_ASSIGN_OR_RETURN(const Creation creation, ReadCreation(session, sampler, config));
  if (size_bytes == nullptr) return NullArgument("size_bytes");
  TARN_ASSIGN_OR_RETURN(*size_bytes, Speculation::Measure(creation.session, creation.picker, creation.config));
  return Ok();
}

Status CreateSpeculation(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* config,
                         tarn_speculation** speculation) {
  TARN_ASSIGN_OR_RETURN(const Creation creation, ReadCreation(session, sampler, config));
  if (speculation == nullptr) return NullArgument("speculation");
  TARN_ASSIGN_OR_RETURN(Speculation * created,
                        Speculation::Create(creation.session, creation.picker, creation.config, creation.memory));
  *speculation = reinterpret_cast<tarn_speculation*>(created);
  return Ok();
}

Status Read(tarn_speculation* speculation, const int32_t* tokens, size_t count) {
  if (speculation == nullptr) return NullArgument("speculation");
  if (tokens == nullptr && count > 0) return NullArgument("tokens");
  return Of(speculation)->Read(tokens, count);
}

Status Step(tarn_speculation* speculation, int32_t token, int32_t* tokens, size_t capacity, size_t* count) {
  if (speculation == nullptr) return NullArgument("speculation");
  if (tokens == nullptr) return NullArgument("tokens");
  return count == nullptr ? NullArgument("count") : Of(speculation)->Step(token, tokens, capacity, count);
}

Status GetStats(const tarn_speculation* speculation, tarn_speculation_stats* stats) {
  if (speculation == nullptr) return NullArgument("speculation");
  if (stats == nullptr) return NullArgument("stats");
  const SpeculationStats& found = Of(speculation)->stats();
  return WriteStruct(tarn_speculation_stats{sizeof(tarn_speculation_stats), found.runs, found.drafted, found.accepted}, stats);
}

}  // namespace
}  // namespace tarn

tarn_status tarn_speculation_requirements(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* config,
                                          uint64_t* size_bytes, tarn_error* error) {
  return tarn::Report(tarn::MeasureSpeculation(session, sampler, config, size_bytes), error);
}

tarn_status tarn_speculation_create(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* config,
                                    tarn_speculation** speculation, tarn_error* error) {
  return tarn::Report(tarn::CreateSpeculation(session, sampler, config, speculation), error);
}

void tarn_speculation_destroy(tarn_speculation* speculation) { tarn::Speculation::Destroy(tarn::Of(speculation)); }

tarn_status tarn_speculation_read(tarn_speculation* speculation, const int32_t* tokens, size_t count, tarn_error* error) {
  return tarn::Report(tarn::Read(speculation, tokens, count), error);
}

tarn_status tarn_speculation_step(tarn_speculation* speculation, int32_t token, int32_t* tokens, size_t capacity, size_t* count,
                                  tarn_error* error) {
  return tarn::Report(tarn::Step(speculation, token, tokens, capacity, count), error);
}

void tarn_speculation_reset(tarn_speculation* speculation) {
  if (speculation != nullptr) tarn::Of(speculation)->Reset();
}

tarn_status tarn_speculation_get_stats(const tarn_speculation* speculation, tarn_speculation_stats* stats, tarn_error* error) {
  return tarn::Report(tarn::GetStats(speculation, stats), error);
}
