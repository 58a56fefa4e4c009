#include "tools/common/evaluation.h"

#include <tarn/tokenizer.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tools/common/failure.h"
#include "tools/common/npy.h"
#include "tools/common/signals.h"

namespace tarn::tools {
namespace {

constexpr size_t kMoreTokens = 32;  // what tokenizers put before and after a text

tarn_model_info InfoOf(const tarn_model* model) {
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_error error;
  Check(tarn_model_get_info(model, &info, &error), error);
  return info;
}

}  // namespace

std::vector<int32_t> Tokenize(const tarn_model* model, const std::string& text) {
  tarn_error error;
  size_t count = 0;
  std::vector<int32_t> tokens(text.size() + kMoreTokens);
  tarn_status status = tarn_tokenize(model, text.data(), text.size(), tokens.data(), tokens.size(), &count, &error);
  if (status == TARN_BUFFER_TOO_SMALL && count > tokens.size()) {
    tokens.resize(count);
    status = tarn_tokenize(model, text.data(), text.size(), tokens.data(), count, &count, &error);
  }
  Check(status, error);
  tokens.resize(count);
  return tokens;
}

double Loss(const float* logits, uint32_t size, uint32_t target) {
  const double largest = *std::max_element(logits, logits + size);
  double sum = 0;
  for (uint32_t i = 0; i < size; ++i) sum += std::exp(logits[i] - largest);
  return largest + std::log(sum) - logits[target];
}

std::vector<int32_t> EvaluationTokens(const tarn_model* model, const EvaluationRange& range, const std::string& content,
                                      const std::string& name, size_t least) {
  const tarn_model_info info = InfoOf(model);
  const bool is_ids = info.tokenizer == TARN_TOKENIZER_NONE || content.rfind("\x93NUMPY", 0) == 0;  // which is no UTF-8
  std::vector<int32_t> tokens = is_ids ? ParseNpyTokens(content, name) : Tokenize(model, content);
  if (range.begin >= tokens.size()) {
    throw Failure(name + ": has " + std::to_string(tokens.size()) + " tokens, expected more than " + std::to_string(range.begin) +
                  ", where the evaluation begins");
  }
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(range.begin));
  if (range.tokens < tokens.size()) tokens.resize(range.tokens);
  // Ids of a file are looked up as targets before the library sees them.
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && static_cast<uint32_t>(tokens[i]) < info.vocab_size) continue;
    throw Failure(name + ": token " + std::to_string(i + range.begin) + " is " + std::to_string(tokens[i]) + ", must be in [0, " +
                  std::to_string(info.vocab_size) + ")");
  }
  if (tokens.size() < least) {
    throw Failure(name + ": " + std::to_string(tokens.size()) + " tokens to read, expected at least " + std::to_string(least));
  }
  return tokens;
}

Evaluation::Evaluation(const tarn_model* model, tarn_session_config config, std::vector<int32_t> tokens, uint64_t block,
                       LogitsSink sink)
    : model_(model),
      tokens_(std::move(tokens)),
      block_(block != 0 ? block : tokens_.size()),
      sink_(std::move(sink)),
      config_(config),
      vocab_size_(InfoOf(model).vocab_size) {
  CheckBlocks(InfoOf(model).max_context);
  config_.max_logits_rows = config_.max_chunk;
  session_ = CreateSession(model, config_);
}

void Evaluation::CheckBlocks(uint64_t max_context) const {
  const uint64_t longest = std::min<uint64_t>(block_, tokens_.size());
  if (Fed(longest) <= max_context) return;
  const std::string most = std::to_string(sink_ ? max_context : max_context + 1);
  throw Failure("a block of " + std::to_string(longest) + " tokens, expected at most " + most + " with the model's context of " +
                std::to_string(max_context) + " tokens: evaluate in blocks with --block " + most + " (tarn-convert: --eval-block " +
                most + ")");
}

Score Evaluation::Run(const std::string& step) {
  Progress progress(stderr, isatty(STDERR_FILENO) == 1, step, tokens_.size(), "tokens");
  for (uint64_t begin = 0; begin < tokens_.size(); begin += block_) {
    RunBlock(begin, std::min<uint64_t>(block_, tokens_.size() - begin), &progress);
  }
  return score_;
}

void Evaluation::RunBlock(uint64_t begin, uint64_t size, Progress* progress) {
  tarn_session_reset(session_.get());
  const uint64_t fed = Fed(size);
  for (uint64_t at = 0; at < fed; at += config_.max_chunk) {
    if (Interrupted()) throw Failure("interrupted");  // the reset may have withdrawn what the signal asked for
    const uint64_t count = std::min<uint64_t>(config_.max_chunk, fed - at);
    const float* logits = nullptr;
    tarn_error error;
    const tarn_status status = tarn_session_score(session_.get(), &tokens_[begin + at], count, &logits, &error);
    if (status != TARN_OK && status != TARN_CANCELLED) {
      throw Failure("at token " + std::to_string(begin + at) + ": " + error.message);
    }
    Check(status, error);
    if (sink_) sink_(logits, count);
    for (uint64_t i = 0; i < count && at + i + 1 < size; ++i) Add(logits + i * vocab_size_, begin + at + i + 1);
    char note[32];
    std::snprintf(note, sizeof(note), "%.4f nats/token", score_.Mean());
    progress->Advance(count, note);
  }
  progress->Advance(size - fed);
}

void Evaluation::Add(const float* logits, uint64_t target) {
  const double loss = Loss(logits, vocab_size_, static_cast<uint32_t>(tokens_[target]));
  if (!std::isfinite(loss)) {
    throw Failure("the loss of token " + std::to_string(target) + " (id " + std::to_string(tokens_[target]) +
                  ") is not finite: neither are the logits before it");
  }
  score_.nats += loss;
  ++score_.scored;
  score_.bytes += tarn_token_bytes(model_, tokens_[target]);
}

}  // namespace tarn::tools
