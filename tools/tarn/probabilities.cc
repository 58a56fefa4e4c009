#include "tools/tarn/probabilities.h"

#include <algorithm>
#include <cmath>

#include "tools/common/evaluation.h"
#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {

std::vector<Probability> MostProbable(const float* logits, uint32_t size, size_t most) {
  std::vector<uint32_t> order(size);
  for (uint32_t id = 0; id < size; ++id) {
    if (!std::isfinite(logits[id])) throw Failure(Format("logit %u is %g, expected a finite number", id, double{logits[id]}));
    order[id] = id;
  }
  const size_t count = std::min<size_t>(size, most);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [=](uint32_t a, uint32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  std::vector<Probability> probabilities;
  if (count == 0) return probabilities;
  const double best = std::exp(-tarn::tools::Loss(logits, size, order[0]));
  for (size_t i = 0; i < count; ++i) {
    probabilities.push_back({order[i], best * std::exp(double{logits[order[i]]} - double{logits[order[0]]})});
  }
  return probabilities;
}

}  // namespace tarn_cli
