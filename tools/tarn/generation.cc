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

// Samples and steps until something ends it; returns what did.
StopReason GenerateAfter(const float* logits, const GenerationOptions& options, tarn_session* session, tarn_sampler* sampler,
                         TokenWriter* writer, std::optional<uint64_t>* warm_pages, GenerationStats* stats) {
  std::optional<StopReason> end;
  int32_t token = 0;
  while (!(end = WhyEnd(options, *writer, *stats))) {
    const bool first = stats->generated == 0;
    const auto start = Clock::now();
    if (!first) {
      const tarn_status status = tarn_session_step(session, &token, &logits, &stats->error);
      if (status == TARN_CANCELLED) {
        stats->error = {TARN_OK, ""};
        return StopReason::kInterrupted;
      }
      if (status != TARN_OK) return StopReason::kError;
      stats->unfed_token.reset();
    }
    if (tarn_sampler_sample(sampler, logits, &token, &stats->error) != TARN_OK) return StopReason::kError;
    const double seconds = SecondsSince(start);
    stats->unfed_token = token;
    const auto ends = options.end_tokens.end();
    if (std::find(options.end_tokens.begin(), ends, token) != ends) return StopReason::kEos;
    if (options.history != nullptr) options.history->Add(token);
    ++stats->generated;
    if (first) {
      stats->first_token_seconds = stats->prompt_seconds + seconds;
    } else {
      stats->generate_seconds += seconds;
      stats->times.Add(1e6 * seconds);
      ++stats->timed_tokens;
    }
    if (options.log_probabilities != nullptr) options.log_probabilities->Write(logits, token);
    writer->Write(token);
    if (options.test_allocate && first) AllocateOnPurpose();
    if (stats->generated == TokenTimes::kKept) *warm_pages = AnonymousPages();
  }
  return *end;
}

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
  if (logits != nullptr) stats.stop = GenerateAfter(logits, options, session, sampler, writer, &warm_pages, &stats);

  if (AllocationCounterMissing() == nullptr) stats.allocations = AllocationCount() - allocations_before;
  const std::optional<uint64_t> pages = AnonymousPages();
  if (stats.generated < TokenTimes::kKept) warm_pages = pages;
  // A page that was given back is no growth.
  if (pages && warm_pages) stats.anonymous_growth_pages = *pages > *warm_pages ? *pages - *warm_pages : 0;
  return stats;
}

}  // namespace tarn_cli
