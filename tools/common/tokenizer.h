// Text to token ids and back, for tools: memory grows with the longest word of a text.
#ifndef TARN_TOOLS_COMMON_TOKENIZER_H_
#define TARN_TOOLS_COMMON_TOKENIZER_H_

#include <tarn/tokenizer.h>

#include <cstdint>
#include <memory>
#include <string>
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
  Encoding Encode(const std::string& text, bool with_template, const std::vector<tarn_text_range>& plain = {});

 private:
  void Create(uint32_t max_word_bytes);
  // TARN_BUFFER_TOO_SMALL is an answer: a word is too long.
  tarn_status Read(const std::string& text, const tarn_tokenizer_options& options, Encoding* encoding, tarn_error* error);

  const tarn_model* model_;
  bool plain_;
  std::unique_ptr<tarn_tokenizer, void (*)(tarn_tokenizer*)> tokenizer_{nullptr, tarn_tokenizer_destroy};
};

// The text of ids, without special tokens unless they are kept. Ids that the model does not have are left out. Throws Failure.
std::string Detokenize(const tarn_model* model, const std::vector<int32_t>& tokens, bool keep_special);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_TOKENIZER_H_
