// tarn eval --choices: whether the right one of several continuations is the most probable, as lm-evaluation-harness defines acc
// and acc_norm (output type multiple_choice).
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tools/common/progress.h"
#include "tools/common/tokenizer.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/eval.h"
#include "tools/tarn/files.h"
#include "tools/tarn/json_lines.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

struct ChoiceSums {
  uint64_t questions = 0;
  uint64_t correct = 0;             // the choice of the largest log probability is the answer
  uint64_t correct_normalized = 0;  // the same, of log probability per character
  uint64_t cut = 0;                 // choices whose context did not fit

  uint64_t count() const { return questions; }
  void Add(const ChoiceSums& other) {
    questions += other.questions;
    correct += other.correct;
    correct_normalized += other.correct_normalized;
    cut += other.cut;
  }
};

bool IsSpace(char letter) { return std::string(" \t\n\v\f\r").find(letter) != std::string::npos; }

size_t Characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

// A choice as ids after those of the context.
struct Continuation {
  Tokens context;
  Tokens tokens;
};

// Texts to ids. White space at the end of a context belongs to the choices, and where there is none, a space stands between the
// two: tokens of words begin with it.
class ChoiceTokenizer {
 public:
  explicit ChoiceTokenizer(const Model& model) : model_(model), tokenizer_(model.get()) {}

  // `what` is for messages. Throws Failure.
  Continuation Encode(const std::string& context, const std::string& choice, const std::string& what) {
    const size_t end = context.find_last_not_of(" \t\n\v\f\r") + 1;  // 0 if there is none
    const std::string before = context.substr(0, end);
    std::string after = context.substr(end);
    if (!context.empty() && after.empty() && !IsSpace(choice.front())) after = " ";
    after += choice;
    Continuation found{tokenizer_.Encode(before, false).tokens, tokenizer_.Encode(before + after, false).tokens};
    const size_t read = std::min(found.context.size(), found.tokens.size());
    found.tokens.erase(found.tokens.begin(), found.tokens.begin() + static_cast<std::ptrdiff_t>(read));
    if (found.tokens.empty()) throw Failure(what + " adds no token to its context");
    const Tokens begin = Begin(before + after);
    found.context.insert(found.context.begin(), begin.begin(), begin.end());
    if (found.context.empty())
      throw Failure(what + ": the context has no tokens, and the model no begin token, expected a context");
    return found;
  }

 private:
  // The ids that come before every text; the begin token where there are none.
  Tokens Begin(const std::string& text) {
    const Tokens all = tokenizer_.Encode(text, true).tokens, inner = tokenizer_.Encode(text, false).tokens;
    const auto begin = std::search(all.begin(), all.end(), inner.begin(), inner.end());
    Tokens tokens(all.begin(), begin);
    if (tokens.empty() && model_.info().bos_token >= 0) tokens.push_back(model_.info().bos_token);
    return tokens;
  }

  const Model& model_;
  tarn::tools::Tokenizer tokenizer_;
};

// Log probabilities of continuations. The context of the choices of a question is read once: its state is kept.
class ChoiceScorer {
 public:
  ChoiceScorer(const Model& model, tarn_session_config config) : vocab_size_(model.info().vocab_size) {
    config.max_logits_rows = config.max_chunk;
    chunk_ = config.max_chunk;
    session_ = CreateSession(model, config);
  }

  double LogProbability(const Tokens& context, const Tokens& tokens) {
    Read(context);
    double nats = tarn::tools::Loss(logits_.data(), vocab_size_, static_cast<uint32_t>(tokens[0]));
    for (size_t at = 0; at + 1 < tokens.size(); at += chunk_) {
      StopIfInterrupted();
      const size_t count = std::min(chunk_, tokens.size() - 1 - at);
      const float* logits = nullptr;
      tarn_error error;
      Check(tarn_session_score(session_.get(), &tokens[at], count, &logits, &error), error);
      for (size_t i = 0; i < count; ++i) {
        nats += tarn::tools::Loss(logits + i * vocab_size_, vocab_size_, static_cast<uint32_t>(tokens[at + i + 1]));
      }
    }
    if (!std::isfinite(nats)) throw Failure("the loss of a choice is not finite: neither are the logits");
    return -nats;
  }

 private:
  void Read(const Tokens& context) {
    StopIfInterrupted();
    tarn_error error;
    if (context == context_) {
      Check(tarn_session_restore(session_.get(), state_.data(), state_.size(), &error), error);
      return;
    }
    context_.clear();
    tarn_session_reset(session_.get());
    const float* logits = nullptr;
    StopIfInterrupted();  // the reset may have withdrawn what the signal asked for
    Check(tarn_session_prefill(session_.get(), context.data(), context.size(), &logits, &error), error);
    logits_.assign(logits, logits + vocab_size_);
    state_.resize(tarn_session_snapshot_bytes(session_.get()));
    Check(tarn_session_save(session_.get(), state_.data(), state_.size(), &error), error);
    context_ = context;
  }

  const uint32_t vocab_size_;
  size_t chunk_;
  Session session_;
  Tokens context_;             // that was read last
  std::vector<float> logits_;  // after it
  std::vector<uint8_t> state_;
};

// What does not fit a bounded model is left out at the begin of the context. False if all of it fits.
bool CutToFit(uint64_t max_context, const std::string& what, Continuation* choice) {
  const uint64_t fed = choice->context.size() + choice->tokens.size() - 1;
  if (fed <= max_context) return false;
  const uint64_t over = fed - max_context;
  if (over >= choice->context.size()) {
    throw Failure(what + Format(": %zu tokens, expected at most %llu, the model's context", choice->tokens.size(),
                                static_cast<unsigned long long>(max_context)));
  }
  choice->context.erase(choice->context.begin(), choice->context.begin() + static_cast<std::ptrdiff_t>(over));
  return true;
}

void Ask(const Question& question, const std::string& what, uint64_t max_context, ChoiceTokenizer* tokenizer, ChoiceScorer* scorer,
         ChoiceSums* sums) {
  std::vector<double> scores, normalized;
  for (const std::string& text : question.choices) {
    const std::string choice = what + Format(": choice %zu", scores.size());
    Continuation continuation = tokenizer->Encode(question.context, text, choice);
    sums->cut += CutToFit(max_context, choice, &continuation);
    scores.push_back(scorer->LogProbability(continuation.context, continuation.tokens));
    normalized.push_back(scores.back() / static_cast<double>(Characters(text)));
  }
  // The first of equal ones.
  const auto best = [](const std::vector<double>& values) {
    return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  };
  ++sums->questions;
  sums->correct += best(scores) == question.answer;
  sums->correct_normalized += best(normalized) == question.answer;
}

Measured<ChoiceSums> MeasureChoices(const EvalOptions& options, const Model& model, const std::string& file) {
  const std::vector<Line> lines = ReadLines(file);
  ChoiceTokenizer tokenizer(model);
  ChoiceScorer scorer(model, SessionConfig(options.session));
  Measured<ChoiceSums> found;
  const auto start = Clock::now();
  tarn::tools::Progress progress(stderr, isatty(STDERR_FILENO) == 1, EvalStep(options, file), lines.size(), "questions");
  for (const Line& line : lines) {
    Ask(QuestionOfLine(line), line.what, model.info().max_context, &tokenizer, &scorer, &found.sums);
    const double share = static_cast<double>(found.sums.correct) / static_cast<double>(found.sums.questions);
    progress.Advance(1, Format("acc %.4f", share));
  }
  found.seconds = SecondsSince(start);
  return found;
}

std::vector<EvalNumber> Numbers(const ChoiceSums& sums) {
  const auto questions = static_cast<double>(sums.questions);
  const double accuracy = static_cast<double>(sums.correct) / questions;
  const double normalized = static_cast<double>(sums.correct_normalized) / questions;
  return {{"questions", sums.questions, "questions", std::to_string(sums.questions)},
          {"acc", accuracy, "acc", Format("%.4f", accuracy)},
          {"acc_norm", normalized, "acc_norm", Format("%.4f", normalized)},
          {"cut_contexts", sums.cut, sums.cut > 0 ? "contexts that were cut" : "", std::to_string(sums.cut)}};
}

}  // namespace

int EvalChoices(const EvalOptions& options, const Model& model) {
  if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
    throw Failure("--choices: " + model.path() + " has no tokenizer, expected one: choices are texts");
  }
  return EvalFiles<ChoiceSums>(
      options, model, "questions", [&](const std::string& file) { return MeasureChoices(options, model, file); }, Numbers);
}

}  // namespace tarn_cli
