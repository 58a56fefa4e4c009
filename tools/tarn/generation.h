// The loop of `tarn run` with a causal model, and what it measures: feed the prompt, then sample and step, without allocating
// anything.
#ifndef TARN_TOOLS_TARN_GENERATION_H_
#define TARN_TOOLS_TARN_GENERATION_H_

#include <tarn/grammar.h>
#include <tarn/tarn.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tarn/log_probability_writer.h"
#include "tools/tarn/prompt_cache.h"
#include "tools/tarn/speculation.h"
#include "tools/tarn/token_writer.h"

namespace tarn_cli {

// Times of the first and of the last 1,000 tokens, in room that is taken beforehand.
class TokenTimes {
 public:
  static constexpr size_t kKept = 1000;

  TokenTimes() : first_(kKept), last_(kKept) {}

  void Add(double microseconds) {
    if (count_ < kKept) first_[count_] = microseconds;
    last_[count_ % kKept] = microseconds;
    ++count_;
  }
  uint64_t count() const { return count_; }
  // Medians; nothing if no time was added.
  std::optional<double> FirstMedian() const { return Median(first_); }
  std::optional<double> LastMedian() const { return Median(last_); }

 private:
  std::optional<double> Median(std::vector<double> times) const;

  std::vector<double> first_;
  std::vector<double> last_;  // ring
  uint64_t count_ = 0;
};

// Why the generation ended.
enum class StopReason { kTokens, kEos, kStop, kGrammar, kMaxContext, kInterrupted, kOutputClosed, kError };

// The last tokens of a text, as many as fit into a room that is taken beforehand.
class TokenRing {
 public:
  explicit TokenRing(size_t capacity) : tokens_(capacity) {}

  void Add(int32_t token) {
    if (!tokens_.empty()) tokens_[count_++ % tokens_.size()] = token;
  }
  template <typename Function>
  void Visit(Function visit) const {  // from the oldest to the newest
    const uint64_t size = tokens_.size();
    for (uint64_t i = count_ > size ? count_ - size : 0; i < count_; ++i) visit(tokens_[i % size]);
  }
  void Clear() { count_ = 0; }

 private:
  std::vector<int32_t> tokens_;
  uint64_t count_ = 0;
};

struct GenerationOptions {
  std::vector<int32_t> prompt;
  uint32_t chunk = 64;                    // the session's: the prompt is fed in such pieces, so that Ctrl-C is noticed between them
  int64_t max_output_tokens = 128;        // -1: until something else ends it
  uint64_t max_context = UINT64_MAX;      // tokens that the session takes
  std::vector<int32_t> end_tokens;        // end the text, and are no part of it
  bool echo = true;                       // write the prompt
  bool progress = false;                  // show how far the prompt is
  const tarn_grammar* grammar = nullptr;  // the sampler's: what it says is complete is the end
  bool test_allocate = false;             // allocate on purpose, to show that the counter counts
  LogProbabilityWriter* log_probabilities = nullptr;  // gets every generated token
  PromptCache* cache = nullptr;                       // the session is at its begin: what of the prompt is there is not read
  Speculation* speculation = nullptr;                 // makes several tokens of one run, with the same text
  TokenRing* history = nullptr;                       // gets the tokens of the prompt, and of the text that is drawn
};

struct GenerationStats {
  StopReason stop = StopReason::kTokens;
  uint64_t prompt_read = 0;
  uint64_t prompt_cached = 0;  // of these, tokens that the cache had
  uint64_t generated = 0;
  double prompt_seconds = 0;       // of a seq2seq model: to encode the sources
  double first_token_seconds = 0;  // from the start of the prompt, or of the first source
  // Samples and steps, without what the terminal takes, and the tokens that came out of them.
  double generate_seconds = 0;
  uint64_t timed_tokens = 0;
  // One per token after the first, whose step is the prompt: step + sampling. After a source every step counts.
  TokenTimes times;
  std::optional<uint64_t> allocations;             // in the whole process, from before the prompt to the last token
  std::optional<uint64_t> anonymous_growth_pages;  // from the 1,000th token (or the last, if fewer) to the last
  std::optional<tarn_speculation_stats> speculation;
  uint64_t speculation_bytes = 0;
  std::optional<int32_t> unfed_token;  // which was drawn last: the state does not have it
  // Of StopReason::kError the call that failed.
  tarn_error error = {TARN_OK, ""};

  double PromptRate(size_t prompt_tokens) const;  // tokens/s of the prompt without what was cached, or of the sources
  std::optional<double> Rate() const;             // tokens/s of what was timed; nothing if there is none
};

// Throws Failure where standard output or the prompt fails; what ends the generation later is in `error` of the result.
GenerationStats Generate(const GenerationOptions& options, tarn_session* session, tarn_sampler* sampler, TokenWriter* writer);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_GENERATION_H_
