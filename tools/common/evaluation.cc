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

Evaluation::Evaluation(const tarn_model* model, const tarn_session_config& config, std::vector<int32_t> tokens, EvaluationPlan plan)
    : model_(model),
      tokens_(std::move(tokens)),
      plan_(std::move(plan)),
      block_(std::min<uint64_t>(plan_.block != 0 ? plan_.block : UINT64_MAX, tokens_.size())),
      stride_(plan_.stride != 0 && plan_.stride < block_ ? plan_.stride : block_),
      config_(config),
      vocab_size_(InfoOf(model).vocab_size) {
  config_.max_logits_rows = config_.max_chunk;
  AddReader(model);
  if (plan_.against != nullptr) AddReader(plan_.against);
}

void Evaluation::AddReader(const tarn_model* model) {
  const uint64_t max_context = InfoOf(model).max_context;
  if (block_ - (plan_.every_row ? 0 : 1) > max_context) {
    const std::string most = std::to_string(plan_.every_row ? max_context : max_context + 1);
    throw Failure("a block of " + std::to_string(block_) + " tokens, expected at most " + most + " with the model's context of " +
                  std::to_string(max_context) + " tokens: evaluate in blocks with --block " + most +
                  " (tarn-convert: --eval-block " + most + ")");
  }
  readers_.push_back(CreateSession(model, config_));
}

Score Evaluation::Run(const std::string& step) {
  Progress progress(stderr, isatty(STDERR_FILENO) == 1, step, tokens_.size(), "tokens");
  uint64_t rows = 0;  // of tokens before, which other blocks gave
  for (uint64_t begin = 0, end = 0; end < tokens_.size(); begin += stride_) {
    end = std::min<uint64_t>(begin + block_, tokens_.size());
    // The row of the last token is wanted where the next block does not give it, and nothing is scored by it then.
    const bool next_gives_it = end < tokens_.size() && stride_ < block_;
    const uint64_t last = next_gives_it || !plan_.every_row ? end - 1 : end;
    RunBlock({begin, end, rows, last}, &progress);
    const uint64_t done = next_gives_it ? end - 1 : end;
    progress.Advance(done - std::max(last, rows));
    rows = done;
  }
  return score_;
}

void Evaluation::RunBlock(const Block& block, Progress* progress) {
  for (const Session& reader : readers_) tarn_session_reset(reader.get());
  const uint64_t chunk = config_.max_chunk;
  // Chunks that are context alone need no logits. The others begin where they would without them: another cut rounds otherwise.
  const uint64_t skipped = (block.first - block.begin) / chunk * chunk;
  if (skipped > 0 && block.first < block.last) Skip(block.begin, skipped);
  for (uint64_t at = block.begin + skipped; at < block.last && block.first < block.last; at += chunk) {
    const uint64_t count = std::min<uint64_t>(chunk, block.last - at);
    const std::vector<const float*> logits = Read(at, count);
    const uint64_t wanted = std::max(block.first, at);
    for (uint64_t row = wanted; row < at + count; ++row) {
      const size_t offset = (row - at) * vocab_size_;
      EvaluationRow found{logits[0] + offset, logits.size() > 1 ? logits[1] + offset : nullptr, std::nullopt};
      if (row + 1 < block.end) {
        found.next = static_cast<uint32_t>(tokens_[row + 1]);
        Add(found.logits, row + 1);
      }
      if (plan_.sink) plan_.sink(found);
    }
    char note[32];
    std::snprintf(note, sizeof(note), "%.4f nats/token", score_.Mean());
    progress->Advance(at + count > wanted ? at + count - wanted : 0, note);
  }
}

void Evaluation::Skip(uint64_t begin, uint64_t count) {
  for (const Session& reader : readers_) {
    const float* logits = nullptr;
    tarn_error error;
    if (Interrupted()) throw Failure("interrupted");  // the reset may have withdrawn what the signal asked for
    Check(tarn_session_prefill(reader.get(), &tokens_[begin], count, &logits, &error), begin, error);
  }
}

std::vector<const float*> Evaluation::Read(uint64_t begin, uint64_t count) {
  std::vector<const float*> rows;
  for (const Session& reader : readers_) {
    const float* logits = nullptr;
    tarn_error error;
    if (Interrupted()) throw Failure("interrupted");
    Check(tarn_session_score(reader.get(), &tokens_[begin], count, &logits, &error), begin, error);
    rows.push_back(logits);
  }
  return rows;
}

void Evaluation::Check(tarn_status status, uint64_t token, const tarn_error& error) const {
  if (status != TARN_OK && status != TARN_CANCELLED) {
    throw Failure("at token " + std::to_string(token) + ": " + error.message);
  }
  tools::Check(status, error);
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
