// How well a model predicts a text. The tokens are cut into blocks; state and position are reset before each. Within a block the
// logits after token i are held against token i + 1, so that every token of a block but its first is scored, a short last block
// included. Blocks may overlap: each begins `stride` tokens after the one before, and what that one has scored is context only.
#ifndef TARN_TOOLS_COMMON_EVALUATION_H_
#define TARN_TOOLS_COMMON_EVALUATION_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <functional>
#include <optional>
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
  uint64_t stride = 0;           // from the begin of a block to that of the next, at most `block`; 0: `block`
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
  void Add(const Score& other) {
    scored += other.scored;
    nats += other.nats;
    bytes += other.bytes;
  }
};

// What came out after a token was read.
struct EvaluationRow {
  const float* logits;   // [vocab_size]
  const float* against;  // the other model's; nullptr if there is none
  std::optional<uint32_t>
      next;  // the id that follows, which is scored; none at the end of a block that the next one does not overlap
};

struct EvaluationPlan {
  uint64_t block = 0;                              // as in EvaluationRange
  uint64_t stride = 0;                             // as in EvaluationRange
  const tarn_model* against = nullptr;             // reads the same tokens beside the model; it has as many ids
  std::function<void(const EvaluationRow&)> sink;  // gets rows in the order of the tokens: those that score one
  bool every_row = false;                          // the sink gets a row for every token, though none is scored after the last
};

class Evaluation {
 public:
  // The models outlive it. Of `config` threads and max_chunk count; `tokens` are those of EvaluationTokens(). Throws Failure:
  // blocks that are longer than a model's context; no session.
  Evaluation(const tarn_model* model, const tarn_session_config& config, std::vector<int32_t> tokens, EvaluationPlan plan);

  // Shows its progress on standard error as that of `step`. Throws Failure: what the library says, with the token; a loss that is
  // not finite; Ctrl-C.
  Score Run(const std::string& step);

  uint64_t tokens() const { return tokens_.size(); }

 private:
  // A block: [begin, end) of the tokens, of which rows from `first` on, and before `last`, are wanted.
  struct Block {
    uint64_t begin, end, first, last;
  };

  void AddReader(const tarn_model* model);
  void RunBlock(const Block& block, Progress* progress);
  void Skip(uint64_t begin, uint64_t count);
  // Rows of every reader for `count` tokens, at most a chunk.
  std::vector<const float*> Read(uint64_t begin, uint64_t count);
  void Check(tarn_status status, uint64_t token, const tarn_error& error) const;
  void Add(const float* logits, uint64_t target);

  const tarn_model* model_;
  const std::vector<int32_t> tokens_;
  const EvaluationPlan plan_;
  const uint64_t block_, stride_;
  tarn_session_config config_;
  uint32_t vocab_size_ = 0;
  std::vector<Session> readers_;  // of the model, and of the other
  Score score_;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_EVALUATION_H_
