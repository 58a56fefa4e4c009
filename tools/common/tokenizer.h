// Text to token ids and back, for tools, part by part: memory grows with the longest word of a text.
#ifndef TARN_TOOLS_COMMON_TOKENIZER_H_
#define TARN_TOOLS_COMMON_TOKENIZER_H_

#include <tarn/tokenizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tarn::tools {

struct Encoding {
  std::vector<int32_t> tokens;
  std::vector<tarn_text_range> ranges;  // of the text, in bytes
};

class Tokenizer {
 public:
  // `model` outlives it. `plain`: special tokens in a text are text like any other. Throws Failure if the model has no tokenizer.
  explicit Tokenizer(const tarn_model* model, bool plain = false);

  // With or without the ids that come before and after every text. Nothing in the parts `plain` is a special token. Throws Failure.
  Encoding Encode(std::string_view text, bool with_template, const std::vector<tarn_text_range>& plain = {});
  // The same, token by token, until `take` answers false.
  using Take = std::function<bool(int32_t token, const tarn_text_range& range)>;
  void Visit(std::string_view text, bool with_template, const Take& take, const std::vector<tarn_text_range>& plain = {});

 private:
  void Create(uint32_t max_word_bytes);
  // TARN_BUFFER_TOO_SMALL is an answer: a word is too long. `*taken` tokens of the text were given before.
  tarn_status Read(std::string_view text, const tarn_tokenizer_options& options, const Take& take, size_t* taken,
                   tarn_error* error);

  const tarn_model* model_;
  uint32_t max_word_bytes_ = 0;
  bool plain_;
  std::unique_ptr<tarn_tokenizer, void (*)(tarn_tokenizer*)> tokenizer_{nullptr, tarn_tokenizer_destroy};
};

// Ids to text, one after the other.
class Detokenizer {
 public:
  // `model` outlives it. Special tokens are left out unless they are kept.
  Detokenizer(const tarn_model* model, bool keep_special);

  // The text that an id completes, until the next call. Ids that the model does not have are left out. Throws Failure.
  std::string_view Next(int32_t token);
  // What is left at the end.
  std::string_view Finish();

 private:
  const tarn_model* model_;
  bool keep_special_;
  int32_t vocab_size_;
  std::vector<char> piece_;
  tarn_text_decoder decoder_ = {};
};

// The text of ids, without special tokens unless they are kept. Ids that the model does not have are left out. Throws Failure.
std::string Detokenize(const tarn_model* model, const std::vector<int32_t>& tokens, bool keep_special);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_TOKENIZER_H_
