#include "runtime/text/penalties.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace tarn {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

float Repeated(float logit, float penalty) {
  const float changed = logit > 0 ? logit / penalty : logit * penalty;
  return std::isinf(changed) && !std::isinf(logit) ? std::copysign(kLargest, logit) : changed;
}

bool Contains(Span<const int32_t> sorted, int32_t token) { return std::binary_search(sorted.begin(), sorted.end(), token); }

// How many of the newest tokens a repeat may span: those after the last breaker.
size_t AfterBreaker(const RecentTokens& recent, size_t window, Span<const int32_t> breakers) {
  if (breakers.empty()) return window;
  for (size_t i = 0; i < window; ++i) {
    if (Contains(breakers, recent[i])) return i;
  }
  return window;
}

// lengths[i], i >= 1: how many tokens from recent[i] on, backwards in time, are those from recent[0] on. The Z-algorithm: each
// comparison that succeeds moves `end`, so that there are at most two per token.
void MatchLengths(const RecentTokens& recent, Span<uint32_t> lengths) {
  size_t begin = 0, end = 0;  // the match that reaches farthest: recent[begin, end) is recent[0, end - begin)
  for (size_t i = 1; i < lengths.size(); ++i) {
    size_t length = i < end ? std::min<size_t>(end - i, lengths[i - begin]) : 0;
    while (i + length < lengths.size() && recent[length] == recent[i + length]) ++length;
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
    lengths[i] = static_cast<uint32_t>(length);
  }
}

// base^n; inf where that is too large.
double Power(double base, uint32_t n) {
  double result = 1;
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

float Lowered(float logit, double by) {
  if (!std::isfinite(logit)) return logit;
  constexpr double kMost = kLargest;
  return static_cast<float>(std::clamp(static_cast<double>(logit) - by, -kMost, kMost));
}

void Penalize(const SamplerConfig& config, const RecentTokens& recent, Span<uint32_t> counts, Span<float> logits) {
  const size_t window = std::min<size_t>(recent.size(), config.repeat_last_n);
  for (size_t i = 0; i < window; ++i) ++counts[recent[i]];
  for (size_t i = 0; i < window; ++i) {
    const int32_t token = recent[i];
    if (counts[token] == 0) continue;  // it stood in the window before
    const double by = counts[token] * static_cast<double>(config.frequency_penalty) + static_cast<double>(config.presence_penalty);
    logits[token] = Lowered(Repeated(logits[token], config.repeat_penalty), by);
    counts[token] = 0;
  }
}

void PenalizeRepeats(const SamplerConfig& config, const RecentTokens& recent, Span<const int32_t> breakers, Span<uint32_t> lengths,
                     Span<uint32_t> longest, Span<float> logits) {
  const size_t window = std::min<size_t>(recent.size(), config.dry_last_n);
  const size_t limit = AfterBreaker(recent, window, breakers);
  const uint32_t allowed = config.dry_allowed_length;
  if (limit < allowed) return;
  MatchLengths(recent, lengths.subspan(0, window));
  for (size_t i = 1; i < window; ++i) {
    uint32_t& of_next = longest[recent[i - 1]];  // the token that followed then
    of_next = std::max<uint32_t>(of_next, static_cast<uint32_t>(std::min<size_t>(lengths[i], limit)));
  }
  for (size_t i = 1; i < window; ++i) {
    const int32_t token = recent[i - 1];
    const uint32_t length = longest[token];
    longest[token] = 0;
    if (length < allowed || Contains(breakers, token)) continue;  // or it stood in the window before
    logits[token] = Lowered(logits[token], config.dry_multiplier * Power(config.dry_base, length - allowed));
  }
}

}  // namespace tarn
