// C API: beam search. Translation only; the work is in runtime/text.
#include "runtime/capi/handles.h"
#include "runtime/text/beam_search.h"
#include "tarn/tarn.h"

namespace tarn {
namespace {

// A tarn_beam is a BeamSearch by another name.
BeamSearch* Of(tarn_beam* beam) { return reinterpret_cast<BeamSearch*>(beam); }
const BeamSearch* Of(const tarn_beam* beam) { return reinterpret_cast<const BeamSearch*>(beam); }

Status ReadConfig(const tarn_beam_config* user, tarn_beam_config* config) {
  if (user == nullptr) return NullArgument("config");
  TARN_RETURN_IF_ERROR(ReadStruct(user, config));
  return CheckAllocator(config->allocator);
}

BeamConfig Translate(const tarn_beam_config& config) {
  return {config.sources,        config.beams,     config.vocab_size, config.max_output_tokens,
          config.length_penalty, config.bos_token, config.eos_token};
}

Status BeamRequirements(const tarn_beam_config* user, uint64_t* size_bytes) {
  if (size_bytes == nullptr) return NullArgument("size_bytes");
  tarn_beam_config config = TARN_BEAM_CONFIG_INIT;
  TARN_RETURN_IF_ERROR(ReadConfig(user, &config));
  TARN_ASSIGN_OR_RETURN(*size_bytes, BeamSearch::SizeBytes(Translate(config)));
  return Ok();
}

Status CreateBeam(const tarn_beam_config* user, tarn_beam** beam) {
  if (beam == nullptr) return NullArgument("beam");
  tarn_beam_config config = TARN_BEAM_CONFIG_INIT;
  TARN_RETURN_IF_ERROR(ReadConfig(user, &config));
  TARN_ASSIGN_OR_RETURN(BeamSearch * created, BeamSearch::Create(Translate(config), AllocatorFrom(config.allocator)));
  *beam = reinterpret_cast<tarn_beam*>(created);
  return Ok();
}

Status AdvanceBeam(tarn_beam* beam, const float* logits) {
  if (beam == nullptr) return NullArgument("beam");
  if (logits == nullptr) return NullArgument("logits");
  return Of(beam)->Advance(logits);
}

Status BeamResult(tarn_beam* beam, uint32_t source, uint32_t rank, const int32_t** tokens, size_t* count, double* score) {
  if (beam == nullptr) return NullArgument("beam");
  if (tokens == nullptr) return NullArgument("tokens");
  if (count == nullptr) return NullArgument("count");
  TARN_ASSIGN_OR_RETURN(const Hypothesis hypothesis, Of(beam)->Get(source, rank));
  *tokens = hypothesis.tokens.data();
  *count = hypothesis.tokens.size();
  if (score != nullptr) *score = hypothesis.score;
  return Ok();
}

}  // namespace
}  // namespace tarn

tarn_status tarn_beam_requirements(const tarn_beam_config* config, uint64_t* size_bytes, tarn_error* error) {
  return tarn::Report(tarn::BeamRequirements(config, size_bytes), error);
}

tarn_status tarn_beam_create(const tarn_beam_config* config, tarn_beam** beam, tarn_error* error) {
  return tarn::Report(tarn::CreateBeam(config, beam), error);
}

void tarn_beam_destroy(tarn_beam* beam) { tarn::BeamSearch::Destroy(tarn::Of(beam)); }

const int32_t* tarn_beam_tokens(const tarn_beam* beam) { return beam == nullptr ? nullptr : tarn::Of(beam)->tokens().data(); }

tarn_status tarn_beam_advance(tarn_beam* beam, const float* logits, tarn_error* error) {
  return tarn::Report(tarn::AdvanceBeam(beam, logits), error);
}

const uint32_t* tarn_beam_parents(const tarn_beam* beam) { return beam == nullptr ? nullptr : tarn::Of(beam)->parents().data(); }

int tarn_beam_done(const tarn_beam* beam) { return beam == nullptr || tarn::Of(beam)->done() ? 1 : 0; }

tarn_status tarn_beam_result(tarn_beam* beam, uint32_t source, uint32_t rank, const int32_t** tokens, size_t* count, double* score,
                             tarn_error* error) {
  return tarn::Report(tarn::BeamResult(beam, source, rank, tokens, count, score), error);
}

void tarn_beam_reset(tarn_beam* beam) {
  if (beam != nullptr) tarn::Of(beam)->Reset();
}
