// tarn run with a causal model: a prompt in, text out as it comes.
#include <cstdio>
#include <memory>
#include <random>

#include "tools/common/signals.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"
#include "tools/tarn/run.h"

namespace tarn_cli {
namespace {

Tokens PromptTokens(const RunOptions& options, const Model& model) {
  Tokens tokens = options.tokens;
  if (tokens.empty()) {
    if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
      throw Failure(model.path() + ": the model has no tokenizer: give the prompt as ids with --tokens 1,2,3");
    }
    tokens = model.Tokenize(options.prompt_file.empty() ? options.prompt : ReadFile(options.prompt_file));
  }
  if (tokens.empty()) {
    throw Failure("the prompt is empty, and the model has no begin token to start from: give one with -p, -f or --tokens");
  }
  return tokens;
}

uint64_t RandomSeed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace

int RunCausal(const RunOptions& options, const Model& model) {
  GenerationOptions generation;
  generation.prompt = PromptTokens(options, model);
  generation.max_tokens = options.max_tokens;
  generation.test_allocate = options.test_allocate;
  tarn_sampler_config chain = options.sampler;
  if (!options.has_seed) chain.seed = RandomSeed();

  tarn::tools::CatchInterrupts();
  const std::unique_ptr<tarn::tools::OutputFile> stats_file = StatsFile(options);
  const tarn_session_config config = SessionConfig(options.session);
  generation.chunk = config.max_chunk;
  const Session session = CreateSession(model, config);
  tarn_error error;
  tarn_sampler* created = nullptr;
  Check(tarn_sampler_create(model.info().vocab_size, &chain, &created, &error), error);
  const std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)> sampler(created, tarn_sampler_destroy);
  TokenWriter writer(model);

  std::fprintf(stderr, "seed %llu, %s\n\n", static_cast<unsigned long long>(chain.seed), HowItRuns(model, config).c_str());
  const GenerationStats stats = Generate(generation, session.get(), sampler.get(), &writer);
  writer.Finish();
  WriteReport({model, config, generation.prompt.size(), chain.seed, std::nullopt, stats}, stats_file.get());
  if (stats.error.status != TARN_OK) {
    throw Failure(Format("after %llu generated tokens: %s", static_cast<unsigned long long>(stats.generated), stats.error.message));
  }
  return tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : 0;
}

}  // namespace tarn_cli
