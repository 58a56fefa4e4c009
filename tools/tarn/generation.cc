#include "tools/tarn/generation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

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

// Feeds and shows the prompt. Returns the logits after it, or nullptr if Ctrl-C or a closed pipe came before its end.
const float* FeedPrompt(const GenerationOptions& options, tarn_session* session, tarn_sampler* sampler, TokenWriter* writer,
                        GenerationStats* stats) {
  for (const int32_t token : options.prompt) writer->Write(token);
  const auto start = Clock::now();
  const float* logits = nullptr;
  for (size_t at = 0; at < options.prompt.size(); at += options.chunk) {
    if (tarn::tools::Interrupted() || writer->closed()) return nullptr;
    const size_t count = std::min<size_t>(options.chunk, options.prompt.size() - at);
    tarn_error error;
    if (tarn_session_prefill(session, options.prompt.data() + at, count, &logits, &error) != TARN_OK) {
      writer->Finish();
      throw Failure(std::string("prompt: ") + error.message);
    }
  }
  for (const int32_t token : options.prompt) tarn_sampler_accept(sampler, token);
  stats->prompt_seconds = SecondsSince(start);
  return logits;
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
  return prompt_seconds > 0 ? static_cast<double>(prompt_tokens) / prompt_seconds : 0;
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
  double step_seconds = 0;
  while (logits != nullptr && (options.max_tokens < 0 || stats.generated < static_cast<uint64_t>(options.max_tokens))) {
    if (tarn::tools::Interrupted() || writer->closed()) break;
    const bool first = stats.generated == 0;
    auto start = Clock::now();
    int32_t token = 0;
    if (tarn_sampler_sample(sampler, logits, &token, &stats.error) != TARN_OK) break;
    const double sample_seconds = SecondsSince(start);
    ++stats.generated;
    if (first) {
      stats.first_token_seconds = stats.prompt_seconds + sample_seconds;
    } else {
      stats.generate_seconds += step_seconds + sample_seconds;
      stats.times.Add(1e6 * (step_seconds + sample_seconds));
      ++stats.timed_tokens;
    }
    writer->Write(token);
    if (options.test_allocate && first) AllocateOnPurpose();
    if (stats.generated == TokenTimes::kKept) warm_pages = AnonymousPages();
    if (stats.generated == static_cast<uint64_t>(options.max_tokens)) break;

    start = Clock::now();
    if (tarn_session_step(session, &token, &logits, &stats.error) != TARN_OK) break;
    step_seconds = SecondsSince(start);
  }

  if (AllocationCounterMissing() == nullptr) stats.allocations = AllocationCount() - allocations_before;
  const std::optional<uint64_t> pages = AnonymousPages();
  if (stats.generated < TokenTimes::kKept) warm_pages = pages;
  // A page that was given back is no growth.
  if (pages && warm_pages) stats.anonymous_growth_pages = *pages > *warm_pages ? *pages - *warm_pages : 0;
  return stats;
}

}  // namespace tarn_cli
