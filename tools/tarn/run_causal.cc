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

namespace tarn_cli {

Tokens PromptTokens(const RunOptions& options, const Model& model) {
  Tokens tokens = options.input.tokens();
  RequireIds(tokens, model, model.info().vocab_size, "run", "--tokens");
  if (tokens.empty()) {
    if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
      throw Failure(model.path() + ": the model has no tokenizer: give the prompt as ids with --tokens 1,2,3");
    }
    tokens = TurnTokens(model, options.turns, options.input.Text(options.raw), TurnPlace::kBegin);
    if (tokens.empty() && model.info().bos_token >= 0) tokens.push_back(model.info().bos_token);
  }
  if (tokens.empty()) {
    throw Failure("the prompt is empty, and the model has no begin token to start from: give one with -p, -f or --tokens");
  }
  const uint64_t most = model.info().max_context;
  if (tokens.size() > most) {
    throw Failure(Format(
        "the prompt has %zu tokens, expected at most %llu tokens, the context of %s: shorten it by %llu, or take a model with "
        "a longer context or without a bound",
        tokens.size(), static_cast<unsigned long long>(most), model.path().c_str(),
        static_cast<unsigned long long>(tokens.size() - most)));
  }
  return tokens;
}

int RunCausal(const RunOptions& options, const Model& model) {
  if (options.sampling.print_grammar) {
    WriteStdout(options.sampling.Rules());
    return 0;
  }
  GenerationOptions generation;
  generation.end_tokens = EndTokens(model, options.turns);
  generation.prompt = PromptTokens(options, model);
  generation.max_output_tokens = options.max_output_tokens;
  generation.test_allocate = options.test_allocate;
  tarn_sampler_config chain = options.sampling.Config();
  const auto grammar = options.sampling.Grammar(model);
  chain.grammar = grammar.get();
  generation.grammar = grammar.get();

  StatsOutput stats_output(options);
  const tarn_session_config config = SessionConfig(options.session);
  generation.chunk = config.max_chunk;
  generation.max_context = model.info().max_context;
  generation.echo = options.echo;
  generation.progress = !options.quiet && isatty(STDERR_FILENO) == 1;
  const Session session = CreateSession(model, config);
  tarn_error error;
  tarn_sampler* created = nullptr;
  Check(tarn_sampler_create(model.info().vocab_size, &chain, &created, &error), error);
  const std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)> sampler(created, tarn_sampler_destroy);
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
  if (stats.prompt_read == generation.prompt.size()) writer.Finish();
  WriteReport({model, config, stats.prompt_read, generation.prompt.size(), chain.seed, std::nullopt, stats}, options,
              &stats_output);
  if (stats.error.status != TARN_OK) {
    throw Failure(Format("after %llu generated tokens: %s", static_cast<unsigned long long>(stats.generated), stats.error.message));
  }
  return tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : 0;
}

}  // namespace tarn_cli
