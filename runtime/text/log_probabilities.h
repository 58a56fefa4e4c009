// How probable a token was, and which ones were most so.
#ifndef TARN_RUNTIME_TEXT_LOG_PROBABILITIES_H_
#define TARN_RUNTIME_TEXT_LOG_PROBABILITIES_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"

namespace tarn {

// As tarn_log_probability.
struct LogProbability {
  int32_t token;
  double log_probability;
};

// As tarn_log_probabilities(). `log_probability` may be nullptr; else `token` is one of the vocabulary.
// Errors: as Summarize() of log_sum_exp.h.
Status LogProbabilities(Span<const float> logits, int32_t token, double* log_probability, Span<LogProbability> best, size_t* count);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_LOG_PROBABILITIES_H_
