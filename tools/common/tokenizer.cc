#include "tools/common/tokenizer.h"

#include <algorithm>

#include "tools/common/failure.h"
#include "tools/common/session.h"

namespace tarn::tools {
namespace {

constexpr uint32_t kWordBytes = 1u << 16;  // enough for nearly every text
constexpr uint32_t kMostWordBytes = 1u << 26;
constexpr uint32_t kGrowth = 4;  // from the one to the other
constexpr size_t kReadAtOnce = 4096;

}  // namespace

Tokenizer::Tokenizer(const tarn_model* model, bool plain) : model_(model), plain_(plain) { Create(kWordBytes); }

void Tokenizer::Create(uint32_t max_word_bytes) {
  tarn_tokenizer_config config = TARN_TOKENIZER_CONFIG_INIT;
  config.max_word_bytes = max_word_bytes_ = max_word_bytes;
  tarn_tokenizer* created = nullptr;
  tarn_error error;
  Check(tarn_tokenizer_create(model_, &config, &created, &error), error);
  tokenizer_.reset(created);
}

tarn_status Tokenizer::Read(std::string_view text, const tarn_tokenizer_options& options, const Take& take, size_t* taken,
                            tarn_error* error) {
  Check(tarn_tokenizer_begin(tokenizer_.get(), text.data(), text.size(), &options, error), *error);
  std::vector<int32_t> tokens(kReadAtOnce);
  std::vector<tarn_text_range> ranges(kReadAtOnce);
  size_t read = 0;
  for (size_t count = kReadAtOnce; count == kReadAtOnce;) {
    const tarn_status status = tarn_tokenizer_read(tokenizer_.get(), tokens.data(), ranges.data(), kReadAtOnce, &count, error);
    for (size_t i = 0; i < count; ++i) {
      if (++read <= *taken) continue;
      ++*taken;
      if (!take(tokens[i], ranges[i])) return TARN_OK;
    }
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

void Tokenizer::Visit(std::string_view text, bool with_template, const Take& take, const std::vector<tarn_text_range>& plain) {
  tarn_tokenizer_options options = TARN_TOKENIZER_OPTIONS_INIT;
  options.no_template = with_template ? 0 : 1;
  options.plain = plain_ ? 1 : 0;
  options.plain_ranges = plain.data();
  options.plain_range_count = plain.size();
  tarn_error error;
  size_t taken = 0;
  tarn_status status = Read(text, options, take, &taken, &error);
  // A word is too long: more memory, and the text once more. Normalized it may be longer than the text.
  while (status == TARN_BUFFER_TOO_SMALL && max_word_bytes_ < kMostWordBytes) {
    Create(max_word_bytes_ * kGrowth);
    status = Read(text, options, take, &taken, &error);
  }
  Check(status, error);
}

Encoding Tokenizer::Encode(std::string_view text, bool with_template, const std::vector<tarn_text_range>& plain) {
  Encoding encoding;
  const auto take = [&](int32_t token, const tarn_text_range& range) {
    encoding.tokens.push_back(token);
    encoding.ranges.push_back(range);
    return true;
  };
  Visit(text, with_template, take, plain);
  return encoding;
}

Detokenizer::Detokenizer(const tarn_model* model, bool keep_special) : model_(model), keep_special_(keep_special) {
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_error error;
  Check(tarn_model_get_info(model, &info, &error), error);
  vocab_size_ = static_cast<int32_t>(std::min<uint32_t>(info.vocab_size, INT32_MAX));
  piece_.resize(tarn_max_piece_bytes(model));
}

std::string_view Detokenizer::Next(int32_t token) {
  if (token < 0 || token >= vocab_size_) return {};
  if (!keep_special_ && tarn_token_is_special(model_, token) != 0) return {};
  size_t size = 0;
  tarn_error error;
  Check(tarn_text_decode(model_, &decoder_, token, piece_.data(), piece_.size(), &size, &error), error);
  return {piece_.data(), size};
}

std::string_view Detokenizer::Finish() { return {piece_.data(), tarn_text_finish(&decoder_, piece_.data())}; }

std::string Detokenize(const tarn_model* model, const std::vector<int32_t>& tokens, bool keep_special) {
  Detokenizer detokenizer(model, keep_special);
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Next(token);
  return text += detokenizer.Finish();
}

}  // namespace tarn::tools
