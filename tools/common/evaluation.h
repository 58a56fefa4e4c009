// How well a model predicts a text. The tokens are cut into blocks; state and position are reset before each. Within a block the
// logits after token i are held against token i + 1, so that every token of a block but its first is scored, a short last block
// included.
#ifndef TARN_TOOLS_COMMON_EVALUATION_H_
#define TARN_TOOLS_COMMON_EVALUATION_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/common/progress.h"
#include "tools/common/session.h"

namespace tarn::tools {

// Token ids of a text. Throws Failure if the model has no tokenizer.
std::vector<int32_t> Tokenize(const tarn_model* model, const std::string& text);

// -log softmax(logits)[target] of `size` logits, in double.
double Loss(const float* logits, uint32_t size, uint32_t target);

// The part of a file that is evaluated, in tokens.
struct EvaluationRange {
  uint64_t begin = 0;
  uint64_t tokens = UINT64_MAX;  // at most
  uint64_t block = 0;            // 0: all in one
};

// The tokens of a range of a file's `content`: a text, or a .npy file of int32 ids.
// Throws Failure, which begins with `name`: fewer tokens than `least` in the range, ids that the model does not have, another
// format.
std::vector<int32_t> EvaluationTokens(const tarn_model* model, const EvaluationRange& range, const std::string& content,
                                      const std::string& name, size_t least = 2);

struct Score {
  uint64_t scored = 0;
  double nats = 0;     // sum over the scored tokens
  uint64_t bytes = 0;  // of text that they stand for; 0 where the model has no tokenizer

  double Mean() const { return scored > 0 ? nats / static_cast<double>(scored) : 0; }
};

class Evaluation {
 public:
  // Gets the logits after `count` tokens, [count, vocab_size], in their order.
  using LogitsSink = std::function<void(const float* logits, uint64_t count)>;

  // `model` outlives it. Of `config` threads and max_chunk count; `tokens` are those of EvaluationTokens(). With a sink the last
  // token of every block is fed too, though there is nothing to score after it. Throws Failure: blocks that are longer
  // than the model's context; no session.
  Evaluation(const tarn_model* model, tarn_session_config config, std::vector<int32_t> tokens, uint64_t block,
             LogitsSink sink = nullptr);

  // Shows its progress on standard error as that of `step`. Throws Failure: what the library says, with the token; a loss that is
  // not finite; Ctrl-C.
  Score Run(const std::string& step);

  uint64_t tokens() const { return tokens_.size(); }

 private:
  void CheckBlocks(uint64_t max_context) const;
  // Tokens of a block of `size` that the model reads: only a sink wants the logits after the last one, and a bounded model may be
  // full by then.
  uint64_t Fed(uint64_t size) const { return sink_ ? size : size - 1; }
  void RunBlock(uint64_t begin, uint64_t size, Progress* progress);
  void Add(const float* logits, uint64_t target);

  const tarn_model* model_;
  const std::vector<int32_t> tokens_;
  const uint64_t block_;
  const LogitsSink sink_;
  tarn_session_config config_;
  uint32_t vocab_size_ = 0;
  Session session_;
  Score score_;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_EVALUATION_H_
