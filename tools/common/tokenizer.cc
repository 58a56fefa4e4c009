#include "tools/common/tokenizer.h"

#include <algorithm>

#include "tools/common/failure.h"
#include "tools/common/session.h"

namespace tarn::tools {
namespace {

constexpr uint32_t kWordBytes = 1u << 16;  // enough for every text that is one
constexpr size_t kMostWordBytes = size_t{1} << 26;
constexpr size_t kReadAtOnce = 4096;

}  // namespace

Tokenizer::Tokenizer(const tarn_model* model, bool plain) : model_(model), plain_(plain) { Create(kWordBytes); }

void Tokenizer::Create(uint32_t max_word_bytes) {
  tarn_tokenizer_config config = TARN_TOKENIZER_CONFIG_INIT;
  config.max_word_bytes = max_word_bytes;
  tarn_tokenizer* created = nullptr;
  tarn_error error;
  Check(tarn_tokenizer_create(model_, &config, &created, &error), error);
  tokenizer_.reset(created);
}

tarn_status Tokenizer::Read(const std::string& text, const tarn_tokenizer_options& options, Encoding* encoding, tarn_error* error) {
  *encoding = {};
  Check(tarn_tokenizer_begin(tokenizer_.get(), text.data(), text.size(), &options, error), *error);
  for (size_t begin = 0, count = kReadAtOnce; count == kReadAtOnce; begin += count) {
    encoding->tokens.resize(begin + kReadAtOnce);
    encoding->ranges.resize(begin + kReadAtOnce);
    const tarn_status status =
        tarn_tokenizer_read(tokenizer_.get(), &encoding->tokens[begin], &encoding->ranges[begin], kReadAtOnce, &count, error);
    if (status != TARN_OK) return status;
    encoding->tokens.resize(begin + count);
    encoding->ranges.resize(begin + count);
  }
  return TARN_OK;
}

Encoding Tokenizer::Encode(const std::string& text, bool with_template, const std::vector<tarn_text_range>& plain) {
  tarn_tokenizer_options options = TARN_TOKENIZER_OPTIONS_INIT;
  options.no_template = with_template ? 0 : 1;
  options.plain = plain_ ? 1 : 0;
  options.plain_ranges = plain.data();
  options.plain_range_count = plain.size();
  Encoding encoding;
  tarn_error error;
  tarn_status status = Read(text, options, &encoding, &error);
  if (status == TARN_BUFFER_TOO_SMALL && text.size() > kWordBytes) {
    Create(static_cast<uint32_t>(std::min(text.size(), kMostWordBytes)));
    status = Read(text, options, &encoding, &error);
  }
  Check(status, error);
  return encoding;
}

std::string Detokenize(const tarn_model* model, const std::vector<int32_t>& tokens, bool keep_special) {
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_error error;
  Check(tarn_model_get_info(model, &info, &error), error);
  std::vector<char> piece(tarn_max_piece_bytes(model));
  tarn_text_decoder decoder = {};
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<uint32_t>(token) >= info.vocab_size) continue;
    if (!keep_special && tarn_token_is_special(model, token) != 0) continue;
    size_t size = 0;
    Check(tarn_text_decode(model, &decoder, token, piece.data(), piece.size(), &size, &error), error);
    text.append(piece.data(), size);
  }
  const size_t size = tarn_text_finish(&decoder, piece.data());
  return text.append(piece.data(), size);
}

}  // namespace tarn::tools
