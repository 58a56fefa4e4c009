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

  const bool scored = score.scored > 0;
  const double mean = score.Mean();
  // A token of the bytes tokenizer is a byte.
  const bool has_bytes = scored && model.info().tokenizer == TARN_TOKENIZER_BYTES;
  if (options.json) {
    const auto number_or_null = [](bool known, double value) { return known ? Json(value) : Json(nullptr); };
    Json json = Json::Object();
    json.Add("model", model.info().name);
    json.Add("tokens", evaluation.tokens());
    json.Add("scored", score.scored);
    json.Add("nats_per_token", number_or_null(scored, mean));
    json.Add("nats_per_byte", number_or_null(has_bytes, mean));
    json.Add("perplexity", number_or_null(scored, std::exp(mean)));
    json.Add("seconds", seconds);
    json.Add("isa", model.info().isa);
    json.Add("dense", model.info().dense);
    WriteStdout(JsonText(json));
    return 0;
  }
  Table table("lr");
  table.Add({"tokens", std::to_string(evaluation.tokens())});
  table.Add({"scored", std::to_string(score.scored)});
  if (scored) table.Add({"nats/token", Format("%.6f", mean)});
  if (has_bytes) table.Add({"nats/byte", Format("%.6f", mean)});
  if (scored) table.Add({"perplexity", Format("%.4f", std::exp(mean))});
  table.Add({"tokens/s", Format("%.1f", static_cast<double>(evaluation.tokens()) / seconds)});
  WriteStdout(table.Text());
  return 0;
}

}  // namespace tarn_cli
