// C API: checkpoints. Translation only; the work is in runtime/generation.
#include "runtime/generation/checkpoints.h"

#include "runtime/capi/handles.h"
#include "runtime/capi/text_stream_state.h"
#include "tarn/checkpoints.h"

namespace tarn {
namespace {

constexpr uint32_t kDefaultLogTokens = 2048, kDefaultSpacing = 64, kDefaultGrammarBytes = 4096;

// A tarn_checkpoints is a Checkpoints by another name.
Checkpoints* Of(tarn_checkpoints* checkpoints) { return reinterpret_cast<Checkpoints*>(checkpoints); }
const Checkpoints* Of(const tarn_checkpoints* checkpoints) { return reinterpret_cast<const Checkpoints*>(checkpoints); }

Result<Generation> ReadGeneration(const tarn_generation* user) {
  if (user == nullptr) return NullArgument("generation");
  tarn_generation parts = TARN_GENERATION_INIT;
  TARN_RETURN_IF_ERROR(ReadStruct(user, &parts));
  if (parts.session == nullptr) return NullArgument("session");
  auto* const session = reinterpret_cast<Session*>(parts.session);
  const Model& model = session->model().model();
  if (model.program(Stage::kDecode) == nullptr) {
    return Error(TARN_UNSUPPORTED, "a model of task %s takes no sequence token by token", TaskName(model.task()));
  }
  return Generation{session, model.vocab_size(Stage::kDecode), reinterpret_cast<Sampler*>(parts.sampler),
                    reinterpret_cast<Grammar*>(parts.grammar), StateOf(parts.text_stream)};
}

struct Creation {
  Generation generation;
  CheckpointsConfig config;
  BlockSource memory;
};

Result<Creation> ReadCreation(const tarn_generation* generation, const tarn_checkpoints_config* user) {
  Creation read{};
  TARN_ASSIGN_OR_RETURN(read.generation, ReadGeneration(generation));
  if (user == nullptr) return NullArgument("config");
  tarn_checkpoints_config config = TARN_CHECKPOINTS_CONFIG_INIT;
  TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  read.config = {config.ring_bytes, OrDefault(config.log_tokens, kDefaultLogTokens), OrDefault(config.spacing, kDefaultSpacing),
                 OrDefault(config.grammar_bytes, kDefaultGrammarBytes)};
  read.memory = BlockSourceFrom(config);
  return read;
}

Status MeasureCheckpoints(const tarn_generation* generation, const tarn_checkpoints_config* config,
                          tarn_checkpoints_memory* memory) {
  TARN_ASSIGN_OR_RETURN(const Creation creation, ReadCreation(generation, config));
  if (memory == nullptr) return NullArgument("memory");
  TARN_ASSIGN_OR_RETURN(const CheckpointsBytes bytes, Checkpoints::Measure(creation.generation, creation.config));
  const tarn_checkpoints_memory found = {sizeof(tarn_checkpoints_memory), bytes.total, bytes.checkpoint, bytes.log, bytes.capacity};
  return WriteStruct(found, memory);
}

Status CreateCheckpoints(const tarn_generation* generation, const tarn_checkpoints_config* config, tarn_checkpoints** checkpoints) {
  TARN_ASSIGN_OR_RETURN(const Creation creation, ReadCreation(generation, config));
  if (checkpoints == nullptr) return NullArgument("checkpoints");
  TARN_ASSIGN_OR_RETURN(Checkpoints * created, Checkpoints::Create(creation.generation, creation.config, creation.memory));
  *checkpoints = reinterpret_cast<tarn_checkpoints*>(created);
  return Ok();
}

Status Record(tarn_checkpoints* checkpoints, const int32_t* tokens, size_t count, const float* logits) {
  if (checkpoints == nullptr) return NullArgument("checkpoints");
  return tokens == nullptr ? NullArgument("tokens") : Of(checkpoints)->Record(tokens, count, logits);
}

Status Rewind(tarn_checkpoints* checkpoints, uint64_t position, const float** logits) {
  if (checkpoints == nullptr) return NullArgument("checkpoints");
  TARN_ASSIGN_OR_RETURN(const float* found, Of(checkpoints)->Rewind(position));
  if (logits != nullptr) *logits = found;
  return Ok();
}

Status RewindToTag(tarn_checkpoints* checkpoints, uint64_t tag, const float** logits) {
  if (checkpoints == nullptr) return NullArgument("checkpoints");
  TARN_ASSIGN_OR_RETURN(const float* found, Of(checkpoints)->RewindToTag(tag));
  if (logits != nullptr) *logits = found;
  return Ok();
}

Status Get(const tarn_checkpoints* checkpoints, size_t index, tarn_checkpoint* checkpoint) {
  if (checkpoints == nullptr) return NullArgument("checkpoints");
  if (checkpoint == nullptr) return NullArgument("checkpoint");
  const CheckpointRing& ring = Of(checkpoints)->ring();
  if (index >= ring.size()) return Error(TARN_NOT_FOUND, "checkpoint is %zu, there are %zu", index, ring.size());
  *checkpoint = {ring[index].position, ring[index].tag, ring[index].has_tag ? 1 : 0};
  return Ok();
}

}  // namespace
}  // namespace tarn

tarn_status tarn_checkpoints_requirements(const tarn_generation* generation, const tarn_checkpoints_config* config,
                                          tarn_checkpoints_memory* memory, tarn_error* error) {
  return tarn::Report(tarn::MeasureCheckpoints(generation, config, memory), error);
}

tarn_status tarn_checkpoints_create(const tarn_generation* generation, const tarn_checkpoints_config* config,
                                    tarn_checkpoints** checkpoints, tarn_error* error) {
  return tarn::Report(tarn::CreateCheckpoints(generation, config, checkpoints), error);
}

void tarn_checkpoints_destroy(tarn_checkpoints* checkpoints) { tarn::Checkpoints::Destroy(tarn::Of(checkpoints)); }

tarn_status tarn_checkpoints_record(tarn_checkpoints* checkpoints, const int32_t* tokens, size_t count, const float* logits,
                                    tarn_error* error) {
  return tarn::Report(tarn::Record(checkpoints, tokens, count, logits), error);
}

tarn_status tarn_checkpoints_mark(tarn_checkpoints* checkpoints, uint64_t tag, const float* logits, tarn_error* error) {
  if (checkpoints == nullptr) return tarn::Report(tarn::NullArgument("checkpoints"), error);
  return tarn::Report(tarn::Of(checkpoints)->Mark(tag, logits), error);
}

tarn_status tarn_checkpoints_rewind(tarn_checkpoints* checkpoints, uint64_t position, const float** logits, tarn_error* error) {
  return tarn::Report(tarn::Rewind(checkpoints, position, logits), error);
}

tarn_status tarn_checkpoints_rewind_to_tag(tarn_checkpoints* checkpoints, uint64_t tag, const float** logits, tarn_error* error) {
  return tarn::Report(tarn::RewindToTag(checkpoints, tag, logits), error);
}

uint64_t tarn_checkpoints_earliest(const tarn_checkpoints* checkpoints) {
  return checkpoints == nullptr ? 0 : tarn::Of(checkpoints)->earliest();
}

tarn_status tarn_checkpoints_get(const tarn_checkpoints* checkpoints, size_t index, tarn_checkpoint* checkpoint,
                                 tarn_error* error) {
  return tarn::Report(tarn::Get(checkpoints, index, checkpoint), error);
}

tarn_status tarn_checkpoints_restart(tarn_checkpoints* checkpoints, tarn_error* error) {
  if (checkpoints == nullptr) return tarn::Report(tarn::NullArgument("checkpoints"), error);
  return tarn::Report(tarn::Of(checkpoints)->Restart(), error);
}
