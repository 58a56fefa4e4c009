// tarn eval with a seq2seq model: how many lines SOURCE<tab>TARGET have the target as their output, token by token.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/common/progress.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/eval.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

struct Pairs {
  std::vector<Tokens> sources;
  std::vector<Tokens> targets;
};

struct PairSums {
  uint64_t lines = 0;
  uint64_t exact = 0;

  uint64_t count() const { return lines; }
  void Add(const PairSums& other) {
    lines += other.lines;
    exact += other.exact;
  }
};

Pairs ReadPairs(const Model& model, const std::string& path) {
  Pairs pairs;
  for (Line line : ReadLines(path)) {
    std::string source;
    if (!CutAtTab(&line, &source)) throw Failure(line.what + " has no tab, expected SOURCE<tab>TARGET");
    pairs.sources.push_back(SourceTokens(model, source, line.what + ": the source"));
    pairs.targets.push_back(line.text.empty() ? Tokens() : TextTokens(model, line.text, line.what + ": the target"));
  }
  return pairs;
}

Measured<PairSums> MeasurePairs(const EvalOptions& options, const Model& model, const std::string& file) {
  const Pairs pairs = ReadPairs(model, file);
  const size_t count = pairs.sources.size();
  TranslationOptions wanted = options.translation;
  wanted.batch = static_cast<uint32_t>(std::min<size_t>(wanted.batch, count));
  Translator translator(model, SessionConfig(options.session), wanted, LongestOf(pairs.sources));
  GenerationStats stats;
  Measured<PairSums> found;
  found.sums.lines = count;
  const auto start = Clock::now();
  tarn::tools::Progress progress(stderr, isatty(STDERR_FILENO) == 1, EvalStep(options, file), count, "lines");
  for (size_t begin = 0; begin < count; begin += wanted.batch) {
    const SourceBatch batch(pairs.sources, begin, wanted.batch);
    if (!translator.Run(batch, nullptr, &stats)) throw Failure("interrupted");
    for (uint32_t i = 0; i < batch.count(); ++i) found.sums.exact += translator.Best(i) == pairs.targets[begin + i];
    progress.Advance(batch.count(), Format("%llu exact", static_cast<unsigned long long>(found.sums.exact)));
  }
  found.seconds = SecondsSince(start);
  return found;
}

}  // namespace

int EvalSeq2Seq(const EvalOptions& options, const Model& model) {
  const TranslationOptions& how = options.translation;
  return EvalFiles<PairSums>(
      options, model, "lines", [&](const std::string& file) { return MeasurePairs(options, model, file); },
      [&](const PairSums& sums) -> std::vector<EvalNumber> {
        const double share = static_cast<double>(sums.exact) / static_cast<double>(sums.lines);
        return {{"lines", sums.lines, "lines", std::to_string(sums.lines)},
                {"exact", sums.exact, "exact", std::to_string(sums.exact)},
                {"exact_match", share, "exact match", Format("%.4f", share)},
                {"beams", how.beams},
                {"length_penalty", ShortestDouble(how.length_penalty)}};
      });
}

}  // namespace tarn_cli
