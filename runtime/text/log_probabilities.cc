#include "runtime/text/log_probabilities.h"

#include <algorithm>
#include <limits>

#include "runtime/text/log_sum_exp.h"
#include "runtime/text/visit_above.h"

namespace tarn {
namespace {

// `log_probability` holds the logit until all of them are known.
bool ComesFirst(const LogProbability& a, const LogProbability& b) {
  return a.log_probability > b.log_probability || (a.log_probability == b.log_probability && a.token < b.token);
}

// The largest logits into `best`, in order; returns how many. They are a heap, the last of them in front, while logits are looked
// at.
size_t LargestLogits(Span<const float> logits, Span<LogProbability> best) {
  if (best.empty()) return 0;
  float limit = -std::numeric_limits<float>::infinity();
  size_t count = 0;
  VisitAbove(logits.data(), logits.size(), &limit, [&](size_t id) {
    if (count == best.size()) {
      std::pop_heap(best.begin(), best.end(), ComesFirst);
      --count;
    }
    best[count++] = {static_cast<int32_t>(id), static_cast<double>(logits[id])};
    std::push_heap(best.begin(), best.begin() + count, ComesFirst);
    if (count == best.size()) limit = logits[best[0].token];  // an equal one has a higher id
    return true;
  });
  std::sort_heap(best.begin(), best.begin() + count, ComesFirst);
  return count;
}

}  // namespace

Status LogProbabilities(Span<const float> logits, int32_t token, double* log_probability, Span<LogProbability> best,
                        size_t* count) {
  LogSumExp sum;
  TARN_RETURN_IF_ERROR(Summarize(logits.data(), logits.size(), &sum));
  const auto log_of = [&](double logit) { return (logit - static_cast<double>(sum.largest)) - sum.log_sum; };
  if (log_probability != nullptr) *log_probability = log_of(static_cast<double>(logits[token]));
  *count = LargestLogits(logits, best);
  for (LogProbability& one : best.subspan(0, *count)) one.log_probability = log_of(one.log_probability);
  return Ok();
}

}  // namespace tarn
