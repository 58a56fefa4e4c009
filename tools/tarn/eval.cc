// tarn eval: how well a model predicts a text.
//
// The tokens are cut into blocks; state and position are reset before each. Within a block the logits after token i are held
// against token i + 1, so that every token of a block but its first is scored, a short last block included.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/common/integer_option.h"
#include "tools/common/output_file.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/model.h"
#include "tools/tarn/npy.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using Clock = std::chrono::steady_clock;
using tarn::tools::AddInteger;
using tarn::tools::OutputFile;
using tarn::tools::Progress;

struct EvalOptions {
  ModelOptions model;
  SessionOptions session;
  std::string file;
  uint64_t begin = 0;
  uint64_t tokens = UINT64_MAX;
  uint64_t block = 0;  // 0: all in one
  std::string logits;
  bool json = false;
};

struct Score {
  uint64_t scored = 0;
  double nats = 0;  // sum over the scored tokens
  double seconds = 0;

  double Mean() const { return scored > 0 ? nats / static_cast<double>(scored) : 0; }
};

// -log softmax(logits)[target], in double.
double Loss(const float* logits, uint32_t vocab_size, int32_t target) {
  const double largest = *std::max_element(logits, logits + vocab_size);
  double sum = 0;
  for (uint32_t i = 0; i < vocab_size; ++i) sum += std::exp(logits[i] - largest);
  return largest + std::log(sum) - logits[target];
}

std::vector<int32_t> ReadTokens(const EvalOptions& options, const Model& model) {
  const std::string content = ReadFile(options.file);
  const bool has_text = model.info().tokenizer != TARN_TOKENIZER_NONE;
  std::vector<int32_t> tokens = has_text ? model.Tokenize(content) : ParseNpyTokens(content, options.file);
  if (options.begin >= tokens.size()) {
    throw Failure(Format("%s: has %zu tokens, wanted more than %llu (--begin)", options.file.c_str(), tokens.size(),
                         static_cast<unsigned long long>(options.begin)));
  }
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(options.begin));
  if (options.tokens < tokens.size()) tokens.resize(options.tokens);
  // Ids of a file are looked up as targets before the library sees them.
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && static_cast<uint32_t>(tokens[i]) < model.info().vocab_size) continue;
    throw Failure(Format("%s: token %zu is %d, must be in [0, %u)", options.file.c_str(), i + options.begin, tokens[i],
                         model.info().vocab_size));
  }
  const size_t wanted = options.logits.empty() ? 2 : 1;
  if (tokens.size() < wanted) {
    throw Failure(Format("%s: %zu tokens to read, wanted at least %zu", options.file.c_str(), tokens.size(), wanted));
  }
  return tokens;
}

class Evaluation {
 public:
  Evaluation(const EvalOptions& options, const Model& model)
      : vocab_size_(model.info().vocab_size), tokens_(ReadTokens(options, model)) {
    config_ = SessionConfig(options.session);
    config_.max_logits_rows = config_.max_chunk;
    session_ = CreateSession(model, config_);
    block_ = options.block != 0 ? options.block : tokens_.size();
    if (!options.logits.empty()) {
      logits_file_ = std::make_unique<OutputFile>(options.logits, std::vector<std::string>{options.model.path, options.file});
      const std::string header = NpyHeader(tokens_.size(), vocab_size_);
      logits_file_->Write(header.data(), header.size());
    }
  }

  Score Run() {
    const auto start = Clock::now();
    Progress progress(stderr, isatty(STDERR_FILENO) == 1, "eval", tokens_.size());
    for (uint64_t begin = 0; begin < tokens_.size(); begin += block_) {
      RunBlock(begin, std::min<uint64_t>(block_, tokens_.size() - begin), &progress);
    }
    if (logits_file_) logits_file_->Commit();
    score_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return score_;
  }

  uint64_t tokens() const { return tokens_.size(); }

 private:
  void RunBlock(uint64_t begin, uint64_t size, Progress* progress) {
    tarn_session_reset(session_.get());
    // The logits after the last token are wanted only by a file: a bounded model may have no room for that token.
    const uint64_t fed = logits_file_ ? size : size - 1;
    for (uint64_t at = 0; at < fed; at += config_.max_chunk) {
      if (tarn::tools::Interrupted()) throw Failure("interrupted");
      const uint64_t count = std::min<uint64_t>(config_.max_chunk, fed - at);
      const float* logits = nullptr;
      tarn_error error;
      const tarn_status status = tarn_session_score(session_.get(), &tokens_[begin + at], count, &logits, &error);
      if (status != TARN_OK) throw Failure(Format("at token %llu: %s", static_cast<unsigned long long>(begin + at), error.message));
      if (logits_file_) logits_file_->Write(logits, count * vocab_size_ * sizeof(float));
      for (uint64_t i = 0; i < count && at + i + 1 < size; ++i) Add(logits + i * vocab_size_, begin + at + i + 1);
      progress->Advance(count, Format("%.4f nats/token", score_.Mean()));
    }
    progress->Advance(size - fed);
  }

  void Add(const float* logits, uint64_t target) {
    const double loss = Loss(logits, vocab_size_, tokens_[target]);
    if (!std::isfinite(loss)) {
      throw Failure(Format("the loss of token %llu (id %d) is %g: the logits before it are not finite",
                           static_cast<unsigned long long>(target), tokens_[target], loss));
    }
    score_.nats += loss;
    ++score_.scored;
  }

  uint32_t vocab_size_;
  std::vector<int32_t> tokens_;
  uint64_t block_ = 0;
  tarn_session_config config_ = TARN_SESSION_CONFIG_INIT;
  Session session_{nullptr, tarn_session_destroy};
  std::unique_ptr<OutputFile> logits_file_;
  Score score_;
};

int Eval(const EvalOptions& options) {
  const Model model(options.model);
  tarn::tools::CatchInterrupts();
  Evaluation evaluation(options, model);
  const Score score = evaluation.Run();

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
    json["seconds"] = score.seconds;
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
  table.Add({"tokens/s", Format("%.1f", static_cast<double>(evaluation.tokens()) / score.seconds)});
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
  AddInteger<uint64_t>(eval, "--begin", &options->begin, "Skip the first N tokens (default: 0)");
  AddInteger<uint64_t>(eval, "--tokens", &options->tokens, "Read at most N tokens (default: all)");
  // The first token of a block is not scored: blocks of one would score nothing.
  AddInteger<uint64_t>(eval, "--block", &options->block, "Reset the model before every N tokens (default: never)", 2);
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
