#include "runtime/text/draw.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tarn {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

// exp(log / temperature); the largest logits have 1 at temperature 0 too, and all others 0.
double Weight(double relative_log, double temperature) { return relative_log == 0 ? 1.0 : std::exp(relative_log / temperature); }

// Fills in the weights of the candidates; returns their sum.
double Weigh(double temperature, const Candidates& candidates, Span<double> weights) {
  double total = 0;
  for (size_t i = 0; i < candidates.count; ++i) {
    weights[i] = Weight(candidates.RelativeLog(candidates.room[i]), temperature);
    total += weights[i];
  }
  return total;
}

// The place of the one that is drawn.
size_t DrawPlace(double total, Pcg32* random, Span<const double> weights) {
  const double target = random->NextDouble() * total;  // < total: the largest draw is 1 - 2^-53
  double sum = weights[0];
  size_t i = 0;
  while (sum <= target && i + 1 < weights.size()) sum += weights[++i];
  return i;
}

// Keeps the weights that are at least `least`, or the first candidate alone where none is; returns their sum.
double KeepWeights(double least, Candidates* candidates, Span<double> weights) {
  size_t kept = 0;
  double total = 0;
  for (size_t i = 0; i < candidates->count; ++i) {
    if (weights[i] < least) continue;
    candidates->room[kept] = candidates->room[i];
    weights[kept] = weights[i];
    total += weights[kept++];
  }
  if (kept == 0) {
    candidates->room[0] = *std::min_element(candidates->begin(), candidates->end());
    kept = 1;
    weights[0] = total = 1;
  }
  candidates->count = kept;
  return total;
}

}  // namespace

double Temperature(const SamplerConfig& config, const Candidates& candidates) {
  const double temperature = config.temperature, range = config.dynatemp_range;
  if (range == 0 || candidates.count < 2) return temperature;
  double total = 0, sum = 0;
  for (const Candidate& candidate : candidates) {
    const double log = candidates.RelativeLog(candidate);
    const double weight = std::exp(log);
    total += weight;
    if (weight > 0) sum += weight * log;
  }
  const double entropy = std::log(total) - sum / total;
  const double share = std::min(1.0, entropy / std::log(static_cast<double>(candidates.count)));
  const double least = std::max(0.0, temperature - range);
  const double power = share <= 0 ? 0 : std::exp(config.dynatemp_exponent * std::log(share));
  return least + (temperature + range - least) * power;
}

MirostatState StartOf(const SamplerConfig& config) { return {2.0 * static_cast<double>(config.mirostat_tau)}; }

int32_t Draw(double temperature, Pcg32* random, Span<double> weights, const Candidates& candidates) {
  const double total = Weigh(temperature, candidates, weights);
  return candidates.room[DrawPlace(total, random, weights.subspan(0, candidates.count))].id;
}

int32_t DrawByMirostat(const SamplerConfig& config, double temperature, MirostatState* state, Pcg32* random, Span<double> weights,
                       Candidates* candidates) {
  const double all = Weigh(temperature, *candidates, weights);
  const double total = KeepWeights(std::exp(-state->mu * kLn2) * all, candidates, weights);
  const size_t drawn = DrawPlace(total, random, weights.subspan(0, candidates->count));
  const double surprise = std::log(total / weights[drawn]) / kLn2;
  state->mu -= config.mirostat_eta * (surprise - config.mirostat_tau);
  return candidates->room[drawn].id;
}

}  // namespace tarn
