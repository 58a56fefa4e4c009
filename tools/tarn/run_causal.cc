// tarn run with a causal model: a prompt in, text out as it comes.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "tools/common/signals.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"
#include "tools/tarn/run.h"
#include "tools/tarn/state_file.h"

namespace tarn_cli {
namespace {

// The token that was drawn last is part of the text, and not of the state yet. In a chat the next turn begins with the end of this
// one.
void FeedLast(const RunOptions& options, const Model& model, const GenerationStats& stats, tarn_session* session) {
  const bool belongs_to_turn = stats.stop == StopReason::kEos && options.turns.chat;
  if (!stats.unfed_token || belongs_to_turn || tarn_session_tokens(session) == model.info().max_context) return;
  tarn_error error;
  tarn_status status = tarn_session_step(session, &*stats.unfed_token, nullptr, &error);
  // A signal that ended the text behind its last step had asked for this: the request is done with.
  if (status == TARN_CANCELLED) status = tarn_session_step(session, &*stats.unfed_token, nullptr, &error);
  Check(status, error);
}

}  // namespace

Tokens PromptTokens(const RunOptions& options, const Model& model, TurnPlace place, uint64_t used) {
  Tokens tokens = options.input.tokens();
  RequireIds(tokens, model, model.info().vocab_size, "run", "--tokens");
  std::string text;
  if (tokens.empty()) {
    if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
      throw Failure(model.path() + ": the model has no tokenizer: give the prompt as ids with --tokens 1,2,3");
    }
    text = options.input.Text(options.raw);
    tokens = TurnTokens(model, options.turns, text, place);
    if (tokens.empty() && place == TurnPlace::kBegin && model.info().bos_token >= 0) tokens.push_back(model.info().bos_token);
  }
  if (tokens.empty()) {
    const std::string where = options.input.is_file() ? FileName(options.input.file()) + ": " : "";
    const std::string empty = where + (text.empty() ? "the prompt is empty" : "no character of the prompt has a token");
    throw Failure(empty + (place == TurnPlace::kBegin
                               ? ", and the model has no begin token to start from: give one with -p, -f or --tokens"
                               : ", and a saved state has no logits to draw the first token from: give the text after it with "
                                 "-p, -f or --tokens"));
  }
  const uint64_t most = model.info().max_context - used;
  if (tokens.size() > most) {
    const std::string free = used == 0 ? "" : Format(" less the %llu of the state", static_cast<unsigned long long>(used));
    throw Failure(Format(
        "the prompt has %zu tokens, expected at most %llu tokens, the context of %s%s: shorten it by %llu, or take a model with "
        "a longer context or without a bound",
        tokens.size(), static_cast<unsigned long long>(most), model.path().c_str(), free.c_str(),
        static_cast<unsigned long long>(tokens.size() - most)));
  }
  return tokens;
}

int RunCausal(const RunOptions& options, const Model& model) {
  if (options.sampling.print_grammar) {
    WriteStdout(options.sampling.Rules());
    return 0;
  }
  const tarn_session_config config = WithDrafts(SessionConfig(options.session), options.speculation);
  const Session session = CreateSession(model, config);
  if (!options.load_state.empty()) LoadState(options.load_state, model, config, session.get());
  std::optional<tarn::tools::OutputFile> state_output;  // now: that it cannot be written should not be found out after an hour
  if (!options.save_state.empty()) state_output.emplace(options.save_state, RunInputs(options));
  std::optional<PromptCache> cache;
  if (!options.prompt_cache.empty()) cache.emplace(model, config, options.prompt_cache, options.prompt_cache_bytes);

  GenerationOptions generation;
  generation.end_tokens = EndTokens(model, options.turns);
  const uint64_t loaded = tarn_session_tokens(session.get());
  generation.prompt = PromptTokens(options, model, loaded == 0 ? TurnPlace::kBegin : TurnPlace::kAfterLineBreak, loaded);
  generation.cache = cache ? &*cache : nullptr;
  generation.max_output_tokens = options.max_output_tokens;
  generation.test_allocate = options.test_allocate;
  tarn_sampler_config chain = options.sampling.Config();
  const auto grammar = options.sampling.Grammar(model);
  chain.grammar = grammar.get();
  generation.grammar = grammar.get();

  StatsOutput stats_output(options);
  generation.chunk = config.max_chunk;
  generation.max_context = model.info().max_context - loaded;
  generation.echo = options.echo;
  generation.progress = !options.quiet && isatty(STDERR_FILENO) == 1;
  tarn_error error;
  tarn_sampler* created = nullptr;
  Check(tarn_sampler_create(model.info().vocab_size, &chain, &created, &error), error);
  const std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)> sampler(created, tarn_sampler_destroy);
  std::optional<Speculation> speculation;
  if (options.speculation.drafts > 0) {
    speculation.emplace(options.speculation, options.model, model, config, session.get(), sampler.get());
  }
  generation.speculation = speculation ? &*speculation : nullptr;
  std::optional<LogProbabilityWriter> log_probabilities;
  if (options.sampling.log_probabilities) log_probabilities.emplace(model, *options.sampling.log_probabilities);
  generation.log_probabilities = log_probabilities ? &*log_probabilities : nullptr;
  const OutputFormat format = stats_output.to_stdout() || log_probabilities ? OutputFormat::kNothing
                              : options.jsonl                               ? OutputFormat::kEvents
                                                                            : OutputFormat::kText;
  TokenWriter writer(model, format, options.stop_strings);

  if (!options.quiet) {
    std::fprintf(stderr, "seed %llu, %s\n\n", static_cast<unsigned long long>(chain.seed), HowItRuns(model, config).c_str());
  }
  const GenerationStats stats = Generate(generation, session.get(), sampler.get(), &writer);
  const bool was_read = stats.prompt_read == generation.prompt.size();
  if (was_read) writer.Finish();
  if (cache) cache->Write();
  if (state_output && was_read && stats.stop != StopReason::kError) {
    FeedLast(options, model, stats, session.get());
    SaveState(session.get(), options.compact_state, &*state_output);
  }
  WriteReport({model, config, stats.prompt_read, generation.prompt.size(), chain.seed, std::nullopt, stats}, options,
              &stats_output);
  if (stats.error.status != TARN_OK) {
    throw Failure(Format("after %llu generated tokens: %s", static_cast<unsigned long long>(stats.generated), stats.error.message));
  }
  return tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : 0;
}

}  // namespace tarn_cli
