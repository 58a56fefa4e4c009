// `tarn run --logprobs`: for each token a line of JSON on standard output.
#ifndef TARN_TOOLS_TARN_LOG_PROBABILITY_WRITER_H_
#define TARN_TOOLS_TARN_LOG_PROBABILITY_WRITER_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/tarn/model.h"

namespace tarn_cli {

class LogProbabilityWriter {
 public:
  // With `alternatives` of the most probable tokens; as many as the vocabulary has, if that is less.
  LogProbabilityWriter(const Model& model, uint32_t alternatives);

  // {"token": 101, "text": "e", "logprob": -0.5, "top": [{"token": ..., "text": ..., "logprob": ...}, ...]} on one line, with the
  // texts of tokens that go on in a text; without text where the model has no tokenizer. Allocates nothing. Throws Failure if it
  // cannot be written.
  void Write(const float* logits, int32_t token);
  // Nobody reads: the other end of the pipe is closed.
  bool closed() const { return closed_; }

 private:
  // The fields of a token; the object is still open.
  void Append(int32_t token, double log_probability);

  const tarn_model* model_;
  tarn_text_decoder in_text_ = {};  // behind a token that is whole, so that another one goes on in its text
  uint32_t vocab_size_;
  bool has_text_;
  bool closed_ = false;
  std::vector<char> piece_;
  std::vector<tarn_log_probability> best_;
  std::string line_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_LOG_PROBABILITY_WRITER_H_
