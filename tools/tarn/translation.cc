#include "tools/tarn/translation.h"

#include <algorithm>
#include <numeric>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/number_option.h"
#include "tools/tarn/allocation_counter.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/error.h"

namespace tarn_cli {
void AddTranslationOptions(App* app, TranslationOptions* options, TaskOptions* by_task) {
  const auto only = [=](const Option* option) { by_task->Only({TARN_TASK_SEQ2SEQ}, option); };
  const OptionGroup group(app, "Beam search (seq2seq)");
  only(tarn::tools::AddInteger<uint32_t>(app, "--beam", &options->beams, "Beams per source; 1: greedy (default: 1)", 1,
                                         kMostSequences));
  only(tarn::tools::AddNumber(app, "--length-penalty", "A", &options->length_penalty,
                              "Exponent A of the score log p / ((5 + length) / 6)^A of an output (default: 0.6)", {0, false}));
}

Translator::Translator(const Model& model, tarn_session_config config, const TranslationOptions& options, uint32_t longest_source)
    : config_(config),
      max_output_tokens_(static_cast<uint32_t>(std::min<uint64_t>(options.max_output_tokens, model.info().max_context))),
      cut_by_(max_output_tokens_ < options.max_output_tokens ? StopReason::kMaxContext : StopReason::kTokens) {
  const tarn_model_info& info = model.info();
  if (info.bos_token < 0) throw Failure(model.path() + ": the model does not say which token begins its outputs");
  config_.batch = options.batch;
  config_.beams = options.beams;
  config_.max_source = longest_source;
  session_ = CreateSession(model, config_);
  tarn_beam_config search = TARN_BEAM_CONFIG_INIT;
  search.sources = options.batch;
  search.beams = options.beams;
  search.vocab_size = info.vocab_size;
  search.max_output_tokens = max_output_tokens_;
  search.length_penalty = options.length_penalty;
  search.bos_token = info.bos_token;
  search.eos_token = info.eos_token;
  tarn_error error;
  tarn_beam* beam = nullptr;
  Check(tarn_beam_create(&search, &beam, &error), error);
  beam_.reset(beam);
}

bool Translator::Run(const SourceBatch& batch, TokenWriter* stream, GenerationStats* stats) {
  const uint64_t allocations_before = AllocationCount();
  tarn_beam_reset(beam_.get());
  streamed_ = 0;
  const auto start = Clock::now();
  tarn_error error;
  const tarn_status status = tarn_session_encode(session_.get(), batch.tokens(), batch.stride(), batch.lengths(), &error);
  if (status == TARN_CANCELLED) return false;
  Check(status, error);
  stats->prompt_read += std::accumulate(batch.lengths(), batch.lengths() + batch.count(), size_t{0});
  const double encode_seconds = SecondsSince(start);
  stats->prompt_seconds += encode_seconds;
  const bool first = stats->times.count() == 0;
  bool goes_on = true;
  while (goes_on && !tarn_beam_done(beam_.get())) {
    goes_on = Step(stream, stats);
    if (first && stats->times.count() == 1) stats->first_token_seconds = encode_seconds + stats->generate_seconds;
  }
  if (AllocationCounterMissing() == nullptr) {
    stats->allocations = stats->allocations.value_or(0) + AllocationCount() - allocations_before;
  }
  return goes_on;
}

bool Translator::Step(TokenWriter* stream, GenerationStats* stats) {
  if (stream != nullptr && stream->closed()) return false;
  const auto start = Clock::now();
  tarn_error error;
  const float* logits = nullptr;
  const tarn_status status = tarn_session_step(session_.get(), tarn_beam_tokens(beam_.get()), &logits, &error);
  if (status == TARN_CANCELLED) return false;
  Check(status, error);
  Check(tarn_beam_advance(beam_.get(), logits, &error), error);
  if (config_.beams > 1) Check(tarn_session_reorder(session_.get(), tarn_beam_parents(beam_.get()), &error), error);
  const double seconds = SecondsSince(start);
  stats->generate_seconds += seconds;
  stats->times.Add(1e6 * seconds);
  if (stream != nullptr) Stream(stream);
  return true;
}

void Translator::Stream(TokenWriter* stream) {
  if (tarn_beam_done(beam_.get()) == 0) {
    stream->Write(tarn_beam_tokens(beam_.get())[0]);
    ++streamed_;
    return;
  }
  // The last step brought the end token, or the last token of an output that is cut.
  const int32_t* tokens = nullptr;
  size_t count = 0;
  tarn_error error;
  Check(tarn_beam_result(beam_.get(), 0, 0, &tokens, &count, nullptr, &error), error);
  for (; streamed_ < count; ++streamed_) stream->Write(tokens[streamed_]);
}

Tokens Translator::Best(uint32_t source) {
  const int32_t* tokens = nullptr;
  size_t count = 0;
  tarn_error error;
  Check(tarn_beam_result(beam_.get(), source, 0, &tokens, &count, nullptr, &error), error);
  return Tokens(tokens, tokens + count);
}

}  // namespace tarn_cli
