// tarn eval: how well a model predicts a text.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/evaluation.h"
#include "tools/common/integer_option.h"
#include "tools/common/npy.h"
#include "tools/common/output_file.h"
#include "tools/common/signals.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/files.h"
#include "tools/tarn/model.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using Clock = std::chrono::steady_clock;
using tarn::tools::AddInteger;
using tarn::tools::Evaluation;
using tarn::tools::EvaluationTokens;
using tarn::tools::OutputFile;

struct EvalOptions {
  ModelOptions model;
  SessionOptions session;
  std::string file;
  tarn::tools::EvaluationRange range;
  std::string logits;
  bool json = false;
};

int Eval(const EvalOptions& options) {
  const Model model(options.model);
  tarn::tools::CatchInterrupts();
  const bool wants_logits = !options.logits.empty();
  std::vector<int32_t> tokens =
      EvaluationTokens(model.get(), options.range, ReadFile(options.file), options.file, wants_logits ? 1 : 2);
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
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  const bool scored = score.scored > 0;
  const double mean = score.Mean();
  // A token of the bytes tokenizer is a byte.
  const bool has_bytes = scored && model.info().tokenizer == TARN_TOKENIZER_BYTES;
  if (options.json) {
    const auto number_or_null = [](bool known, double value) {
      return known ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json json;
    json["model"] = model.info().name;
    json["tokens"] = evaluation.tokens();
    json["scored"] = score.scored;
    json["nats_per_token"] = number_or_null(scored, mean);
    json["nats_per_byte"] = number_or_null(has_bytes, mean);
    json["perplexity"] = number_or_null(scored, std::exp(mean));
    json["seconds"] = seconds;
    json["isa"] = model.info().isa;
    json["dense"] = model.info().dense;
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

}  // namespace

void AddEval(CLI::App* app, Command* command) {
  CLI::App* eval = app->add_subcommand("eval", "Measure how well a model predicts a text");
  const auto options = std::make_shared<EvalOptions>();
  eval->add_option("-m,--model", options->model.path, "Model file")->required()->type_name("FILE");
  eval->add_option("-f,--file", options->file, "Text; for a model without tokenizer a .npy file of int32 ids")
      ->required()
      ->type_name("FILE");
  AddInteger<uint64_t>(eval, "--begin", &options->range.begin, "Skip the first N tokens (default: 0)");
  AddInteger<uint64_t>(eval, "--tokens", &options->range.tokens, "Read at most N tokens (default: all)");
  // The first token of a block is not scored: blocks of one would score nothing.
  AddInteger<uint64_t>(eval, "--block", &options->range.block, "Reset the model before every N tokens (default: never)", 2);
  eval->add_option("--logits", options->logits, "Write the logits after every token: float32 [tokens, vocab], .npy")
      ->type_name("FILE");
  eval->add_flag("--json", options->json, "Print one JSON object");
  AddSessionOptions(eval, &options->session);
  AddModelOptions(eval, &options->model);
  eval->footer(
      "Every token is scored but the first of the text, or of each block.\n"
      "Examples:\n"
      "  tarn eval -m model.tarn -f text.txt\n"
      "  tarn eval -m model.tarn -f text.txt --begin 1003854 --block 256 --json");
  eval->callback([=] { *command = [=] { return Eval(*options); }; });
}

}  // namespace tarn_cli
