// How far the predictions of a model are from those of another one, row of logits by row.
#ifndef TARN_TOOLS_TARN_COMPARISON_H_
#define TARN_TOOLS_TARN_COMPARISON_H_

#include <cstdint>
#include <vector>

namespace tarn_cli {

// How many positive numbers there were of each size, in memory that does not grow: 2^17 intervals, whose ends are 0.2 % apart.
class Distribution {
 public:
  void Add(double value);  // >= 0
  void Add(const Distribution& other);
  // The smallest value that at least `share` of all values do not exceed, to 0.1 %. 0 if there are none.
  double Quantile(double share) const;
  double max() const { return max_; }

 private:
  std::vector<uint64_t> counts_;  // empty before the first value
  uint64_t count_ = 0;
  double max_ = 0;
};

// Of predictions p of the model and q of the other: the Kullback-Leibler divergence sum q log(q / p) in nats, how often both have
// the same most probable token, and the loss of q.
class Comparison {
 public:
  // A row of both models, and the id that follows. Throws Failure: a logit is not finite.
  void Add(const float* logits, const float* against, uint32_t vocab_size, uint32_t next);
  void Add(const Comparison& other);

  double MeanLoss() const { return Mean(nats_); }  // of the other model
  double MeanDivergence() const { return Mean(divergence_); }
  double SameTop() const { return Mean(static_cast<double>(same_top_)); }
  const Distribution& divergences() const { return divergences_; }

 private:
  double Mean(double sum) const { return rows_ > 0 ? sum / static_cast<double>(rows_) : 0; }

  uint64_t rows_ = 0;
  uint64_t same_top_ = 0;
  double nats_ = 0;
  double divergence_ = 0;
  Distribution divergences_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_COMPARISON_H_
