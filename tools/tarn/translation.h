// From sources to outputs with a seq2seq model: encode, then step, choose and reorder until all are done; and what that takes.
#ifndef TARN_TOOLS_TARN_TRANSLATION_H_
#define TARN_TOOLS_TARN_TRANSLATION_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <memory>

#include "tools/common/command_line.h"
#include "tools/tarn/generation.h"
#include "tools/tarn/sources.h"
#include "tools/tarn/task.h"
#include "tools/tarn/token_writer.h"

namespace tarn_cli {

struct TranslationOptions {
  uint32_t batch = 1;
  uint32_t beams = 1;
  uint32_t max_output_tokens = 128;  // of an output; a bounded model may make it fewer
  float length_penalty = 0.6f;
};

constexpr uint32_t kMostSequences = 4096;  // sources of a batch, beams of a source: more is a slip of the finger

// --beam, --length-penalty.
void AddTranslationOptions(App* app, TranslationOptions* options, TaskOptions* by_task);

class Translator {
 public:
  // `model` outlives it. Of `config` threads and max_chunk count. Throws Failure: no session, a model without begin token.
  Translator(const Model& model, tarn_session_config config, const TranslationOptions& options, uint32_t longest_source);

  // Translates the sources of `batch`. With `stream`, for one greedy source, its tokens are written as they come. False if Ctrl-C
  // or a closed pipe came before the end: there is then no Best(). Adds to `*stats` times, allocations and source tokens. Throws
  // Failure. Allocates nothing.
  bool Run(const SourceBatch& batch, TokenWriter* stream, GenerationStats* stats);

  // Of a source of the last batch the output of the highest score.
  Tokens Best(uint32_t source);

  // The longest output, the end token counted, and whether -n or the model's bound says so.
  uint32_t max_output_tokens() const { return max_output_tokens_; }
  StopReason cut_by() const { return cut_by_; }

  // As it is: with the numbers of sequences and the longest source.
  const tarn_session_config& config() const { return config_; }

 private:
  bool Step(TokenWriter* stream, GenerationStats* stats);
  void Stream(TokenWriter* stream);

  tarn_session_config config_;
  uint32_t max_output_tokens_;
  StopReason cut_by_;
  Session session_;
  std::unique_ptr<tarn_beam, void (*)(tarn_beam*)> beam_{nullptr, tarn_beam_destroy};
  size_t streamed_ = 0;  // tokens of the last Run()
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_TRANSLATION_H_
