// tarn run with a seq2seq model: sources in, one output a line.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/tarn/error.h"
#include "tools/tarn/process_memory.h"
#include "tools/tarn/report.h"
#include "tools/tarn/run.h"

namespace tarn_cli {
namespace {

std::vector<Tokens> Sources(const RunOptions& options, const Model& model) {
  const Input& input = options.input;
  RequireIds(input.tokens(), model, model.info().source_vocab_size, "run", "--tokens");
  if (!input.tokens().empty()) return {input.tokens()};
  if (input.is_nothing()) throw UsageError("run: no source, expected one of -p, -f and --tokens");
  if (!input.is_file()) return {SourceTokens(model, input.Text(), "the source", options.turns.plain)};
  std::vector<Tokens> sources;
  for (const Line& line : ReadLines(input.file()))
    sources.push_back(SourceTokens(model, line.text, line.what, options.turns.plain));
  return sources;
}

// Anonymous pages from after the first batch on.
class Growth {
 public:
  void Sample() {
    const std::optional<uint64_t> pages = AnonymousPages();
    if (!first_) first_ = pages;
    last_ = pages;
  }
  // A page that was given back is no growth.
  std::optional<uint64_t> pages() const {
    if (!first_ || !last_) return std::nullopt;
    return *last_ > *first_ ? *last_ - *first_ : 0;
  }

 private:
  std::optional<uint64_t> first_, last_;
};

// Writes an output a line, one greedy source as it comes.
void TranslateAll(const std::vector<Tokens>& sources, uint32_t batch_size, bool streams, Translator* translator,
                  TokenWriter* writer, bool quiet, GenerationStats* stats) {
  Growth growth;
  stats->stop = StopReason::kEos;
  tarn::tools::Progress progress(stderr, !quiet && isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 0, "run", sources.size(),
                                 "sources");
  for (size_t begin = 0; begin < sources.size() && !writer->closed(); begin += batch_size) {
    const SourceBatch batch(sources, begin, batch_size);
    const bool finished = translator->Run(batch, streams ? writer : nullptr, stats);
    for (uint32_t i = 0; finished && i < batch.count(); ++i) {
      const Tokens output = translator->Best(i);
      stats->generated += output.size();
      // The end token counts: an output of this length has none.
      if (output.size() == translator->max_output_tokens()) stats->stop = translator->cut_by();
      if (!streams) {
        for (const int32_t token : output) writer->Write(token);
        writer->Finish();
      }
    }
    if (streams) writer->Finish();
    growth.Sample();
    if (!quiet) progress.Advance(batch.count());
    if (!finished) break;
  }
  stats->timed_tokens = stats->generated;
  stats->anonymous_growth_pages = growth.pages();
  if (writer->closed()) stats->stop = StopReason::kOutputClosed;
  if (tarn::tools::Interrupted()) stats->stop = StopReason::kInterrupted;
}

}  // namespace

int RunSeq2Seq(const RunOptions& options, const Model& model) {
  if (options.max_output_tokens < 1 || options.max_output_tokens > UINT32_MAX) {
    throw UsageError(Format("run: -n is %lld, must be from 1 to %u: the longest output of a seq2seq model",
                            static_cast<long long>(options.max_output_tokens), UINT32_MAX));
  }
  const std::vector<Tokens> sources = Sources(options, model);
  StatsOutput stats_output(options);
  TranslationOptions wanted = options.translation;
  wanted.batch = static_cast<uint32_t>(std::min<size_t>(wanted.batch, sources.size()));
  wanted.max_output_tokens = static_cast<uint32_t>(options.max_output_tokens);
  Translator translator(model, SessionConfig(options.session), wanted, LongestOf(sources));
  TokenWriter writer(model, stats_output.to_stdout() ? OutputFormat::kNothing : OutputFormat::kText);
  const bool streams = sources.size() == 1 && wanted.beams == 1;
  if (!options.quiet) {
    std::fprintf(stderr, "%u beam%s, %s\n\n", wanted.beams, wanted.beams == 1 ? "" : "s",
                 HowItRuns(model, translator.config()).c_str());
  }

  GenerationStats stats;
  TranslateAll(sources, wanted.batch, streams, &translator, &writer, options.quiet, &stats);
  uint64_t source_tokens = 0;
  for (const Tokens& source : sources) source_tokens += source.size();
  WriteReport({model, translator.config(), stats.prompt_read, source_tokens, std::nullopt, stats.prompt_seconds, stats}, options,
              &stats_output);
  return tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : 0;
}

}  // namespace tarn_cli
