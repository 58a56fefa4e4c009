#include "tools/tarn/log_probability_writer.h"

#include <algorithm>
#include <cstdio>

#include "tools/common/printable.h"
#include "tools/common/tokenizer.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"

namespace tarn_cli {
namespace {

// The state of a decoder behind a text, with nothing pending. Where a tokenizer has no such text, that of one that begins.
tarn_text_decoder DecoderInText(const Model& model, std::vector<char>* piece) {
  tarn_text_decoder decoder = {};
  for (const int32_t token : tarn::tools::Tokenizer(model.get()).Encode("a", /*with_template=*/false).tokens) {
    tarn_error error;
    size_t size = 0;
    Check(tarn_text_decode(model.get(), &decoder, token, piece->data(), piece->size(), &size, &error), error);
  }
  return decoder.pending_bytes == 0 ? decoder : tarn_text_decoder{};
}

}  // namespace

LogProbabilityWriter::LogProbabilityWriter(const Model& model, uint32_t alternatives)
    : model_(model.get()),
      vocab_size_(model.info().vocab_size),
      has_text_(model.info().tokenizer != TARN_TOKENIZER_NONE),
      piece_(2 * tarn_max_piece_bytes(model.get())),
      best_(std::min(alternatives, model.info().vocab_size)) {
  if (has_text_) in_text_ = DecoderInText(model, &piece_);
  constexpr size_t kNumbers = 100;    // with the names of fields
  constexpr size_t kMostEscaped = 6;  // \u00e4 for a byte
  line_.reserve((best_.size() + 1) * (kNumbers + kMostEscaped * piece_.size()));
}

void LogProbabilityWriter::Write(const float* logits, int32_t token) {
  if (closed_) return;
  double log_probability = 0;
  size_t count = 0;
  tarn_error error;
  Check(tarn_log_probabilities(logits, vocab_size_, token, &log_probability, best_.data(), best_.size(), &count, &error), error);
  line_.clear();
  Append(token, log_probability);
  line_ += ",\"top\":[";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) line_ += ',';
    Append(best_[i].token, best_[i].log_probability);
    line_ += '}';
  }
  line_ += "]}\n";
  closed_ = !WriteStdout(line_.data(), line_.size());
}

void LogProbabilityWriter::Append(int32_t token, double log_probability) {
  char number[64];
  std::snprintf(number, sizeof(number), "{\"token\":%d", token);
  line_ += number;
  if (has_text_) {
    // Of this token alone: bytes that are no character without their neighbours show as U+FFFD.
    tarn_text_decoder decoder = in_text_;
    tarn_error error;
    size_t size = 0;
    Check(tarn_text_decode(model_, &decoder, token, piece_.data(), piece_.size(), &size, &error), error);
    size += tarn_text_finish(&decoder, piece_.data() + size);
    line_ += ",\"text\":";
    tarn::tools::AppendJsonString({piece_.data(), size}, &line_);
  }
  std::snprintf(number, sizeof(number), ",\"logprob\":%.7g", log_probability);
  line_ += number;
}

}  // namespace tarn_cli
