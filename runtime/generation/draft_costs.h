// How many drafts are worth their time: what a run of several rows takes, as a multiple of a step, is measured as it happens. Dense
// layers take rows in tiles, so that the time is no line: each number of rows has its own.
#ifndef TARN_RUNTIME_GENERATION_DRAFT_COSTS_H_
#define TARN_RUNTIME_GENERATION_DRAFT_COSTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tarn {

class DraftCosts {
 public:
  // `row_cost` > 0: a row costs that much of a step, always.
  explicit DraftCosts(float row_cost) : row_(row_cost > 0 ? row_cost : kFirstRow), is_fixed_(row_cost > 0) {}

  struct Choice {
    size_t drafts;
    float rate;  // tokens in the time of a step; 1: without drafts
  };

  // Few tokens are not worth a risk: the least rate of a choice of drafts.
  static constexpr float kLeastRate = 1.04f;

  // Of drafts that are right with these probabilities, each if those before it are.
  Choice Choose(const float* probabilities, size_t count) const {
    Choice best = {0, 1};
    float right = 1, tokens = 1;
    for (size_t i = 0; i < count; ++i) {
      right *= probabilities[i];
      tokens += right;
      const float rate = tokens / Cost(i + 2);
      if (rate > best.rate && rate >= kLeastRate) best = {i + 1, rate};
    }
    return best;
  }

  // A run of `rows` rows took `ns`.
  void Note(size_t rows, uint64_t ns) {
    if (rows == 1) runs_ = 0;
    if (is_fixed_ || ns == 0) return;
    const auto time = static_cast<float>(ns);
    if (rows == 1) {
      // A run that was interrupted says little, and one that was fast says that those before were interrupted.
      step_ = step_ == 0 ? time : time < step_ ? (step_ + time) / 2 : Blend(step_, std::min(time, 2 * step_));
      return;
    }
    ++runs_;
    if (step_ == 0) return;
    // Several rows take no less than one, but where they take hardly more, either time may be the longer one by chance.
    if (time < step_ / 2) step_ = time;
    const float cost = std::min(time / step_, 2 * Cost(rows));
    row_ = Blend(row_, std::max(kLeastRow, (cost - 1) / static_cast<float>(rows - 1)));
    if (rows >= kRows) return;
    costs_[rows] = costs_[rows] == 0 ? cost : Blend(costs_[rows], cost);
    // Some other number of rows is tried again, lest a time that was wrong stays.
    if (++notes_ % kRows == 0) costs_[notes_ / kRows % kRows] = 0;
  }
  float step_ns() const { return step_; }
  // Many runs had drafts: it is time for a step, which tells how long one takes now.
  bool wants_step() const { return runs_ >= kMostRuns; }
  // Of one more row, and of a run, in steps.
  float row_cost() const { return row_; }
  float Cost(size_t rows) const {
    return rows < kRows && costs_[rows] > 0 ? costs_[rows] : 1 + row_ * static_cast<float>(rows - 1);
  }

 private:
  static constexpr float kFirstRow = 0.25f, kLeastRow = 0.01f;
  static constexpr size_t kRows = 65;
  static constexpr uint32_t kMostRuns = 64;
  static float Blend(float old_value, float value) { return old_value + (value - old_value) / 8; }

  float row_;  // beyond the first, where the time of a number of rows is not known
  bool is_fixed_;
  float costs_[kRows] = {};  // by the number of rows, in steps; 0: not known
  uint32_t notes_ = 0;
  uint32_t runs_ = 0;  // since a step was measured
  float step_ = 0;     // nanoseconds; 0: not known, as where there is no clock
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_DRAFT_COSTS_H_
