#include "tools/tarn/generation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/tarn/allocation_counter.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/error.h"
#include "tools/tarn/process_memory.h"

namespace tarn_cli {
namespace {

// One of each kind that the counter knows.
void AllocateOnPurpose() {
  void* volatile memory = std::malloc(100);
  std::free(memory);
  void* volatile object = ::operator new(100);
  ::operator delete(object);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* mapping = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping != MAP_FAILED) munmap(mapping, page);
}

// Where a part of the prompt ends that is fed as a whole: a cache has the state before the last token.
size_t NextEnd(const GenerationOptions& options, size_t read) {
  const size_t size = options.prompt.size();
  return options.cache != nullptr && read + 1 < size ? size - 1 : size;
}

// Feeds the prompt, then shows it. Returns the logits after it, or nullptr with the reason if it did not come to its end.
const float* FeedPrompt(const GenerationOptions& options, tarn_session* session, tarn_sampler* sampler, TokenWriter* writer,
                        GenerationStats* stats) {
  const float* logits = nullptr;
  {
    tarn::tools::Progress progress(stderr, options.progress, "prompt", options.prompt.size(), "tokens");
    const auto start = Clock::now();
    if (options.cache != nullptr) stats->prompt_cached = stats->prompt_read = options.cache->Restore(options.prompt, session);
    while (stats->prompt_read < options.prompt.size()) {
      if (tarn::tools::Interrupted()) {
        stats->stop = StopReason::kInterrupted;
        return nullptr;
      }
      const size_t count = std::min<size_t>(options.chunk, NextEnd(options, stats->prompt_read) - stats->prompt_read);
      tarn_error error;
      const tarn_status status = tarn_session_prefill(session, &options.prompt[stats->prompt_read], count, &logits, &error);
      if (status == TARN_CANCELLED) {  // of this chunk nothing was read
        stats->stop = StopReason::kInterrupted;
        return nullptr;
      }
      if (status != TARN_OK) throw Failure(std::string("prompt: ") + error.message);
      stats->prompt_read += count;
      stats->prompt_seconds = SecondsSince(start);
      if (options.cache != nullptr) options.cache->Note(options.prompt, stats->prompt_read, session);
      if (options.progress) progress.Advance(count);
    }
  }
  for (const int32_t token : options.prompt) {
    tarn_sampler_accept(sampler, token);
    if (options.history != nullptr) options.history->Add(token);
  }
  if (options.speculation != nullptr) options.speculation->Read(options.prompt);
  writer->WritePrompt(options.prompt, options.echo);
  return logits;
}

// Why no further token is drawn; nothing if one is.
std::optional<StopReason> WhyEnd(const GenerationOptions& options, const TokenWriter& writer, const GenerationStats& stats) {
  if (writer.stopped()) return StopReason::kStop;
  if (tarn::tools::Interrupted()) return StopReason::kInterrupted;
  const bool closed = options.log_probabilities != nullptr && options.log_probabilities->closed();
  if (closed || writer.closed()) return StopReason::kOutputClosed;
  if (options.grammar != nullptr && tarn_grammar_progress_of(options.grammar) == TARN_GRAMMAR_COMPLETE) return StopReason::kGrammar;
  if (options.max_output_tokens >= 0 && stats.generated >= static_cast<uint64_t>(options.max_output_tokens))
    return StopReason::kTokens;
  // The token that was drawn last has no place to be fed.
  if (options.prompt.size() + stats.generated > options.max_context) return StopReason::kMaxContext;
  return std::nullopt;
}

// The text behind the prompt.
class Generator {
 public:
  Generator(const GenerationOptions& options, tarn_session* session, tarn_sampler* sampler, TokenWriter* writer,
            std::optional<uint64_t>* warm_pages, GenerationStats* stats)
      : options_(options), session_(session), sampler_(sampler), writer_(writer), warm_pages_(warm_pages), stats_(stats) {}

  // Samples and steps until something ends it; returns what did.
  StopReason Run(const float* logits) {
    end_ = WhyEnd(options_, *writer_, *stats_);
    if (!end_) Sample(logits, Clock::now());
    while (!end_) {
      if (options_.speculation != nullptr) {
        Speculate();
      } else {
        Step();
      }
    }
    return *end_;
  }

 private:
  void Step() {
    const auto start = Clock::now();
    const float* logits = nullptr;
    if (IsError(tarn_session_step(session_, &token_, &logits, &stats_->error))) return;
    stats_->unfed_token.reset();
    Sample(logits, start);
  }

  void Sample(const float* logits, Clock::time_point start) {
    int32_t token = 0;
    if (tarn_sampler_sample(sampler_, logits, &token, &stats_->error) != TARN_OK) {
      end_ = StopReason::kError;
      return;
    }
    const double seconds = SecondsSince(start);
    const uint64_t before = stats_->generated;
    Take(token, logits);
    AddTime(seconds, stats_->generated - before);
  }

  void Speculate() {
    const auto start = Clock::now();
    const uint64_t before = stats_->generated;
    written_seconds_ = 0;
    IsError(options_.speculation->Step(token_, on_token_, &stats_->error));
    AddTime(SecondsSince(start) - written_seconds_, stats_->generated - before);
  }

  bool IsError(tarn_status status) {
    if (status == TARN_OK) return false;
    if (status == TARN_CANCELLED) stats_->error = {TARN_OK, ""};
    end_ = status == TARN_CANCELLED ? StopReason::kInterrupted : StopReason::kError;
    return true;
  }

  // A token that was drawn, and whether it is the last.
  void Take(int32_t token, const float* logits) {
    const auto start = Clock::now();
    token_ = token;
    stats_->unfed_token = token;
    const auto ends = options_.end_tokens.end();
    if (std::find(options_.end_tokens.begin(), ends, token) != ends) {
      end_ = StopReason::kEos;
      return;
    }
    if (options_.history != nullptr) options_.history->Add(token);
    ++stats_->generated;
    if (options_.log_probabilities != nullptr) options_.log_probabilities->Write(logits, token);
    writer_->Write(token);
    if (options_.test_allocate && stats_->generated == 1) AllocateOnPurpose();
    if (stats_->generated == TokenTimes::kKept) *warm_pages_ = AnonymousPages();
    end_ = WhyEnd(options_, *writer_, *stats_);
    written_seconds_ += SecondsSince(start);
  }

  // Of `tokens` that came out of one call.
  void AddTime(double seconds, uint64_t tokens) {
    if (tokens == 0) return;
    if (stats_->generated == tokens) {  // the first is there
      stats_->first_token_seconds = stats_->prompt_seconds + seconds;
      return;
    }
    stats_->generate_seconds += seconds;
    for (uint64_t i = 0; i < tokens; ++i) stats_->times.Add(1e6 * seconds / static_cast<double>(tokens));
    stats_->timed_tokens += tokens;
  }

  const GenerationOptions& options_;
  tarn_session* const session_;
  tarn_sampler* const sampler_;
  TokenWriter* const writer_;
  std::optional<uint64_t>* const warm_pages_;
  GenerationStats* const stats_;
  int32_t token_ = 0;  // the last one
  double written_seconds_ = 0;
  std::optional<StopReason> end_;
  const Speculation::OnToken on_token_ = [this](int32_t token, const float* logits) {
    Take(token, logits);
    return !end_;
  };
};

}  // namespace

std::optional<double> TokenTimes::Median(std::vector<double> times) const {
  if (count_ == 0) return std::nullopt;
  times.resize(std::min<uint64_t>(count_, kKept));
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double GenerationStats::PromptRate(size_t prompt_tokens) const {
  return prompt_seconds > 0 ? static_cast<double>(prompt_tokens - prompt_cached) / prompt_seconds : 0;
}

std::optional<double> GenerationStats::Rate() const {
  if (timed_tokens == 0 || generate_seconds <= 0) return std::nullopt;
  return static_cast<double>(timed_tokens) / generate_seconds;
}

GenerationStats Generate(const GenerationOptions& options, tarn_session* session, tarn_sampler* sampler, TokenWriter* writer) {
  GenerationStats stats;
  std::optional<uint64_t> warm_pages = AnonymousPages();
  const uint64_t allocations_before = AllocationCount();

  const float* logits = FeedPrompt(options, session, sampler, writer, &stats);
  if (logits != nullptr) stats.stop = Generator(options, session, sampler, writer, &warm_pages, &stats).Run(logits);

  if (AllocationCounterMissing() == nullptr) stats.allocations = AllocationCount() - allocations_before;
  if (options.speculation != nullptr) {
    stats.speculation = options.speculation->Stats();
    stats.speculation_bytes = options.speculation->size_bytes();
  }
  const std::optional<uint64_t> pages = AnonymousPages();
  if (stats.generated < TokenTimes::kKept) warm_pages = pages;
  // A page that was given back is no growth.
  if (pages && warm_pages) stats.anonymous_growth_pages = *pages > *warm_pages ? *pages - *warm_pages : 0;
  return stats;
}

}  // namespace tarn_cli
