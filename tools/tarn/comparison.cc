#include "tools/tarn/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

// The bits of positive floats are in the order of the floats: the exponent and the upper 9 bits of the fraction are the interval.
constexpr int kDroppedBits = 14;
constexpr size_t kIntervals = size_t{1} << (31 - kDroppedBits);

size_t IntervalOf(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof(bits));
  return bits >> kDroppedBits;
}

double MiddleOf(size_t interval) {
  if (interval == 0) return 0;
  const uint32_t bits = static_cast<uint32_t>(interval) << kDroppedBits | 1u << (kDroppedBits - 1);
  float middle = 0;
  std::memcpy(&middle, &bits, sizeof(middle));
  return middle;
}

}  // namespace

void Distribution::Add(double value) {
  counts_.resize(kIntervals);
  ++counts_[IntervalOf(value)];
  ++count_;
  max_ = std::max(max_, value);
}

void Distribution::Add(const Distribution& other) {
  if (other.count_ == 0) return;
  counts_.resize(kIntervals);
  for (size_t i = 0; i < kIntervals; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

double Distribution::Quantile(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t below = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    if (below >= wanted && counts_[i] > 0) return std::min(MiddleOf(i), max_);
  }
  return max_;
}

void Comparison::Add(const float* logits, const float* against, uint32_t vocab_size, uint32_t next) {
  const float* top = std::max_element(logits, logits + vocab_size);
  const float* against_top = std::max_element(against, against + vocab_size);
  double sum = 0, against_sum = 0, weighted = 0;
  for (uint32_t i = 0; i < vocab_size; ++i) {
    const double weight = std::exp(double{against[i]} - double{*against_top});
    sum += std::exp(double{logits[i]} - double{*top});
    against_sum += weight;
    weighted += weight * (double{against[i]} - double{logits[i]});
  }
  const double normalizer = *top + std::log(sum), against_normalizer = *against_top + std::log(against_sum);
  // It is never negative, but for rounding.
  const double divergence = std::max(0.0, weighted / against_sum + normalizer - against_normalizer);
  if (!std::isfinite(weighted) || !std::isfinite(divergence)) {
    throw Failure("the KL divergence is not finite: neither are the logits of one of the two models");
  }
  ++rows_;
  same_top_ += top - logits == against_top - against;
  nats_ += against_normalizer - against[next];
  divergence_ += divergence;
  divergences_.Add(divergence);
}

void Comparison::Add(const Comparison& other) {
  rows_ += other.rows_;
  same_top_ += other.same_top_;
  nats_ += other.nats_;
  divergence_ += other.divergence_;
  divergences_.Add(other.divergences_);
}

}  // namespace tarn_cli
