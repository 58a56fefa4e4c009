// What turns logits into log probabilities: log p_i = (x_i - largest) - log_sum, log_sum = log(sum_j exp(x_j - largest)) >= 0.
#ifndef TARN_RUNTIME_TEXT_LOG_SUM_EXP_H_
#define TARN_RUNTIME_TEXT_LOG_SUM_EXP_H_

#include <cstddef>

#include "core/status.h"

namespace tarn {

struct LogSumExp {
  float largest;
  double log_sum;  // off by less than 1e-6
};

// One pass over `logits` [size], size >= 1. -inf is a token of probability 0.
// Errors: TARN_INVALID_ARGUMENT (a logit is NaN or +inf: names it; or all are -inf).
Status Summarize(const float* logits, size_t size, LogSumExp* result);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_LOG_SUM_EXP_H_
