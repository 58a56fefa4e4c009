// tarn eval with a causal model: how well it predicts a text, and how far its predictions are from another model's.
#include <cmath>
#include <optional>
#include <utility>

#include "tools/common/npy.h"
#include "tools/common/output_file.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/comparison.h"
#include "tools/tarn/eval.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using tarn::tools::Evaluation;
using tarn::tools::EvaluationPlan;
using tarn::tools::EvaluationRow;
using tarn::tools::EvaluationTokens;
using tarn::tools::OutputFile;

struct TextSums {
  uint64_t tokens = 0;
  tarn::tools::Score score;
  Comparison comparison;

  uint64_t count() const { return tokens; }
  void Add(const TextSums& other) {
    tokens += other.tokens;
    score.Add(other.score);
    comparison.Add(other.comparison);
  }
};

// The same ids must stand for the same text: what a file becomes shows it.
void RequireSameTokens(const EvalOptions& options, const Model& other, const std::string& content, const std::string& name,
                       const std::vector<int32_t>& tokens, size_t least) {
  const std::vector<int32_t> others = EvaluationTokens(other.get(), options.range, content, name, least);
  for (size_t i = 0; i < std::max(tokens.size(), others.size()); ++i) {
    if (i < tokens.size() && i < others.size() && tokens[i] == others[i]) continue;
    const auto id = [i](const std::vector<int32_t>& ids) { return i < ids.size() ? std::to_string(ids[i]) : "none"; };
    throw Failure(name + Format(": token %zu is ", i) + id(tokens) + ", and " + id(others) + " with --against " + other.path() +
                  ", expected models with the same tokenizer");
  }
}

// Throws Failure if the two cannot be compared.
void RequireComparable(const Model& model, const Model& other) {
  const tarn_model_info &info = model.info(), &others = other.info();
  if (others.task != TARN_TASK_CAUSAL_LM) {
    throw Failure("--against " + other.path() + ": its task is " + TaskName(others.task) + ", expected causal_lm");
  }
  if (others.vocab_size != info.vocab_size) {
    throw Failure("--against " + other.path() +
                  Format(": a vocabulary of %u, expected %u as ", others.vocab_size, info.vocab_size) + model.path() + " has");
  }
  if ((others.tokenizer == TARN_TOKENIZER_NONE) != (info.tokenizer == TARN_TOKENIZER_NONE)) {
    throw Failure("--against " + other.path() + ": one of the models has a tokenizer, the other has none; expected the same");
  }
}

// null, and not in the table, if the model cannot say it.
EvalNumber NumberIf(bool known, const char* key, double value, const char* label, int digits) {
  if (!known) return {key, nullptr};
  return {key, value, label, Format("%.*f", digits, value)};
}

void AddComparison(const Comparison& comparison, const Model& other, double mean, std::vector<EvalNumber>* numbers) {
  const auto add = [numbers](const char* key, double value, const char* label, const char* format) {
    numbers->push_back({key, value, label, Format(format, value)});
  };
  const double loss = comparison.MeanLoss();
  const Distribution& divergences = comparison.divergences();
  numbers->push_back({"against", other.info().name});
  add("against_nats_per_token", loss, "against nats/token", "%.6f");
  add("against_perplexity", std::exp(loss), "against perplexity", "%.4f");
  add("nats_difference", mean - loss, "difference", "%+.6f");
  add("kl_mean", comparison.MeanDivergence(), "KL mean", "%.6f");
  add("kl_p50", divergences.Quantile(0.5), "KL 50 %", "%.6f");
  add("kl_p90", divergences.Quantile(0.9), "KL 90 %", "%.6f");
  add("kl_p95", divergences.Quantile(0.95), "KL 95 %", "%.6f");
  add("kl_p99", divergences.Quantile(0.99), "KL 99 %", "%.6f");
  add("kl_p99_9", divergences.Quantile(0.999), "KL 99.9 %", "%.6f");
  add("kl_max", divergences.max(), "KL largest", "%.6f");
  add("top1_agreement", comparison.SameTop(), "same top token", "%.4f");
}

std::vector<EvalNumber> Numbers(const TextSums& sums, const Model* other) {
  const tarn::tools::Score& score = sums.score;
  const bool scored = score.scored > 0, has_bytes = score.bytes > 0;
  const double mean = score.Mean();
  const double per_byte = has_bytes ? score.nats / static_cast<double>(score.bytes) : 0;
  std::vector<EvalNumber> numbers = {{"tokens", sums.tokens, "tokens", std::to_string(sums.tokens)},
                                     {"scored", score.scored, "scored", std::to_string(score.scored)},
                                     NumberIf(scored, "nats_per_token", mean, "nats/token", 6),
                                     NumberIf(has_bytes, "nats_per_byte", per_byte, "nats/byte", 6),
                                     NumberIf(scored, "perplexity", std::exp(mean), "perplexity", 4)};
  if (other != nullptr) AddComparison(sums.comparison, *other, mean, &numbers);
  return numbers;
}

Measured<TextSums> MeasureText(const EvalOptions& options, const Model& model, const Model* other, const std::string& file) {
  const bool wants_logits = !options.logits.empty();
  const size_t least = wants_logits ? 1 : 2;
  const std::string content = ReadFile(file), name = FileName(file);
  std::vector<int32_t> tokens = EvaluationTokens(model.get(), options.range, content, name, least);
  if (other != nullptr) RequireSameTokens(options, *other, content, name, tokens, least);

  const uint32_t vocab_size = model.info().vocab_size;
  std::optional<OutputFile> logits_file;
  if (wants_logits) {
    logits_file.emplace(options.logits, std::vector<std::string>{options.model.path, options.against, file});
    const std::string header = tarn::tools::NpyHeader(tokens.size(), vocab_size);
    logits_file->Write(header.data(), header.size());
  }
  Measured<TextSums> found;
  EvaluationPlan plan;
  plan.block = options.range.block;
  plan.stride = options.range.stride;
  plan.every_row = wants_logits;
  plan.against = other != nullptr ? other->get() : nullptr;
  plan.sink = [&](const EvaluationRow& row) {
    if (logits_file) logits_file->Write(row.logits, vocab_size * sizeof(float));
    if (row.against != nullptr && row.next) found.sums.comparison.Add(row.logits, row.against, vocab_size, *row.next);
  };
  found.sums.tokens = tokens.size();
  Evaluation evaluation(model.get(), SessionConfig(options.session), std::move(tokens), std::move(plan));
  const auto start = Clock::now();
  found.sums.score = evaluation.Run(EvalStep(options, file));
  if (logits_file) logits_file->Commit();
  found.seconds = SecondsSince(start);
  return found;
}

}  // namespace

int EvalCausal(const EvalOptions& options, const Model& model) {
  std::optional<Model> other;
  if (!options.against.empty()) {
    ModelOptions against = options.model;
    against.path = options.against;
    other.emplace(against);
    RequireComparable(model, *other);
  }
  const Model* compared = other ? &*other : nullptr;
  return EvalFiles<TextSums>(
      options, model, "tokens", [&](const std::string& file) { return MeasureText(options, model, compared, file); },
      [&](const TextSums& sums) { return Numbers(sums, compared); });
}

}  // namespace tarn_cli
