// tarn eval with a causal model: how well it predicts a text.
#include <cmath>
#include <optional>
#include <utility>

#include "tools/common/npy.h"
#include "tools/common/output_file.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/eval.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"

namespace tarn_cli {

using tarn::tools::Evaluation;
using tarn::tools::EvaluationTokens;
using tarn::tools::OutputFile;

int EvalCausal(const EvalOptions& options, const Model& model) {
  const bool wants_logits = !options.logits.empty();
  std::vector<int32_t> tokens =
      EvaluationTokens(model.get(), options.range, ReadFile(options.file), FileName(options.file), wants_logits ? 1 : 2);
  std::optional<OutputFile> logits_file;
  Evaluation::LogitsSink sink;
  if (wants_logits) {
    const uint32_t vocab_size = model.info().vocab_size;
    logits_file.emplace(options.logits, std::vector<std::string>{options.model.path, options.file});
    const std::string header = tarn::tools::NpyHeader(tokens.size(), vocab_size);
    logits_file->Write(header.data(), header.size());
    sink = [&logits_file, vocab_size](const float* logits, uint64_t count) {
      logits_file->Write(logits, count * vocab_size * sizeof(float));
    };
  }
  Evaluation evaluation(model.get(), SessionConfig(options.session), std::move(tokens), options.range.block, std::move(sink));
  const auto start = Clock::now();
  const tarn::tools::Score score = evaluation.Run("eval");
  if (logits_file) logits_file->Commit();
  const double seconds = SecondsSince(start);

  // null, and not in the table, if the model cannot say it.
  const auto number = [](bool known, const char* key, double value, const char* label, int digits) -> EvalNumber {
    if (!known) return {key, nullptr};
    return {key, value, label, Format("%.*f", digits, value)};
  };
  const bool scored = score.scored > 0, has_bytes = score.bytes > 0;
  const double mean = score.Mean();
  const double per_byte = has_bytes ? score.nats / static_cast<double>(score.bytes) : 0;
  return WriteResult(options, model,
                     {{"tokens", evaluation.tokens(), "tokens", std::to_string(evaluation.tokens())},
                      {"scored", score.scored, "scored", std::to_string(score.scored)},
                      number(scored, "nats_per_token", mean, "nats/token", 6),
                      number(has_bytes, "nats_per_byte", per_byte, "nats/byte", 6),
                      number(scored, "perplexity", std::exp(mean), "perplexity", 4)},
                     "tokens", evaluation.tokens(), seconds);
}

}  // namespace tarn_cli
