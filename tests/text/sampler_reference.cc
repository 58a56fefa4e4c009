#include "tests/text/sampler_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace tarn {
namespace {

using Choices = std::vector<Choice>;

// Probabilities at a temperature.
void Softmax(double temperature, Choices* choices) {
  double top = -INFINITY, total = 0;
  for (const Choice& choice : *choices) top = std::max(top, choice.logit);
  for (Choice& choice : *choices) total += choice.probability = std::exp((choice.logit - top) / temperature);
  for (Choice& choice : *choices) choice.probability /= total;
}

double Entropy(const Choices& choices) {
  double entropy = 0;
  for (const Choice& choice : choices) {
    if (choice.probability > 0) entropy -= choice.probability * std::log(choice.probability);
  }
  return entropy;
}

void SortByLogit(Choices* choices) {
  std::stable_sort(choices->begin(), choices->end(),
                   [](const Choice& a, const Choice& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); });
}

// The front of the list, until its probabilities reach `share`.
void KeepFront(double share, Choices* choices) {
  double sum = 0;
  size_t count = 0;
  while (count < choices->size() && sum < share) sum += (*choices)[count++].probability;
  choices->resize(count);
}

template <typename Keep>
void KeepIf(Choices* choices, Keep keep) {
  Choices kept;
  std::copy_if(choices->begin(), choices->end(), std::back_inserter(kept), keep);
  *choices = kept;
}

void TopNSigma(double n, Choices* choices) {
  const auto size = static_cast<double>(choices->size());
  double sum = 0, squares = 0, top = -INFINITY;
  for (const Choice& choice : *choices) sum += choice.logit;
  for (const Choice& choice : *choices) {
    squares += (choice.logit - sum / size) * (choice.logit - sum / size);
    top = std::max(top, choice.logit);
  }
  const double floor = top - n * std::sqrt(squares / size);
  KeepIf(choices, [=](const Choice& choice) { return choice.logit >= floor; });
}

void Typical(double share, Choices* choices) {
  Softmax(1, choices);
  const double entropy = Entropy(*choices);
  std::map<int32_t, double> distance;
  for (const Choice& choice : *choices) distance[choice.id] = std::abs(-std::log(choice.probability) - entropy);
  SortByLogit(choices);
  std::stable_sort(choices->begin(), choices->end(),
                   [&](const Choice& a, const Choice& b) { return distance[a.id] < distance[b.id]; });
  KeepFront(share, choices);
  SortByLogit(choices);
}

void Xtc(double threshold, Choices* choices) {
  Softmax(1, choices);
  Choices sorted = *choices;
  SortByLogit(&sorted);
  KeepIf(&sorted, [=](const Choice& choice) { return choice.probability >= threshold; });
  if (sorted.empty()) return;
  sorted.pop_back();
  for (const Choice& dropped : sorted) KeepIf(choices, [=](const Choice& choice) { return choice.id != dropped.id; });
}

}  // namespace

void SamplerReference::PenalizeRecent(std::vector<float>* logits) const {
  std::map<int32_t, int> counts;
  for (size_t i = 0; i < accepted_.size(); ++i) {
    if (accepted_.size() - i <= config_.repeat_last_n) ++counts[accepted_[i]];
  }
  for (const auto& [token, count] : counts) {
    float& logit = (*logits)[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / config_.repeat_penalty : logit * config_.repeat_penalty;
    logit = static_cast<float>(logit - (count * double{config_.frequency_penalty} + double{config_.presence_penalty}));
  }
}

void SamplerReference::Dry(std::vector<float>* logits) const {
  const size_t size = std::min<size_t>(accepted_.size(), config_.dry_last_n);
  const std::vector<int32_t> window(accepted_.end() - static_cast<std::ptrdiff_t>(size), accepted_.end());
  const std::set<int32_t> breakers(config_.dry_breakers.begin(), config_.dry_breakers.end());
  std::map<int32_t, size_t> longest;
  for (size_t end = 0; end + 1 < size; ++end) {  // of the earlier occurrence
    size_t length = 0;
    while (length <= end && window[end - length] == window[size - 1 - length] && breakers.count(window[end - length]) == 0)
      ++length;
    longest[window[end + 1]] = std::max(longest[window[end + 1]], length);
  }
  for (const auto& [token, length] : longest) {
    if (length < config_.dry_allowed_length || breakers.count(token) > 0) continue;
    float& logit = (*logits)[static_cast<size_t>(token)];
    const double by = config_.dry_multiplier * std::pow(config_.dry_base, static_cast<double>(length - config_.dry_allowed_length));
    logit = static_cast<float>(logit - by);
  }
}

std::vector<float> SamplerReference::Edited(const std::vector<float>& logits) const {
  std::vector<float> edited = logits;
  for (const TokenBias& bias : config_.logit_bias) edited[static_cast<size_t>(bias.token)] += bias.bias;
  for (const int32_t token : config_.banned_tokens) edited[static_cast<size_t>(token)] = -INFINITY;
  if (config_.edit_logits != nullptr) config_.edit_logits(config_.edit_context, edited.data(), edited.size());
  PenalizeRecent(&edited);
  if (config_.dry_multiplier > 0) Dry(&edited);
  return edited;
}

void SamplerReference::Truncate(bool xtc_fires, Choices* choices) const {
  const size_t vocab_size = choices->size();
  KeepIf(choices, [](const Choice& choice) { return choice.logit > -INFINITY; });
  if (config_.mirostat != 0) return;
  if (config_.top_n_sigma > 0) TopNSigma(config_.top_n_sigma, choices);
  if (config_.top_k > 0 && config_.top_k < vocab_size) {
    SortByLogit(choices);
    choices->resize(std::min<size_t>(choices->size(), config_.top_k));
  }
  if (config_.typical_p < 1) Typical(config_.typical_p, choices);
  if (config_.top_p < 1) {
    SortByLogit(choices);
    Softmax(1, choices);
    KeepFront(config_.top_p, choices);
  }
  if (config_.min_p > 0) {
    double top = -INFINITY;
    for (const Choice& choice : *choices) top = std::max(top, choice.logit);
    KeepIf(choices, [&](const Choice& choice) { return choice.logit - top >= std::log(double{config_.min_p}); });
  }
  if (xtc_fires) Xtc(config_.xtc_threshold, choices);
}

double SamplerReference::TemperatureFor(Choices choices) const {
  const double temperature = config_.temperature, range = config_.dynatemp_range;
  if (range == 0 || choices.size() < 2) return temperature;
  Softmax(1, &choices);
  const double share = Entropy(choices) / std::log(static_cast<double>(choices.size()));
  const double low = std::max(0.0, temperature - range), high = temperature + range;
  return low + (high - low) * std::pow(std::clamp(share, 0.0, 1.0), double{config_.dynatemp_exponent});
}

Choices SamplerReference::Distribution(const std::vector<float>& logits, bool xtc_fires) const {
  const std::vector<float> edited = Edited(logits);
  Choices choices;
  for (size_t i = 0; i < edited.size(); ++i) choices.push_back({static_cast<int32_t>(i), edited[i], 0});
  if (config_.temperature == 0) {
    SortByLogit(&choices);
    return {{choices[0].id, choices[0].logit, 1}};
  }
  Truncate(xtc_fires, &choices);
  Softmax(TemperatureFor(choices), &choices);
  if (config_.mirostat == 0) return choices;
  Choices kept = choices;
  KeepIf(&kept, [&](const Choice& choice) { return -std::log2(choice.probability) <= mu_; });
  if (kept.empty()) {
    SortByLogit(&choices);
    kept.push_back(choices[0]);
  }
  double total = 0;
  for (const Choice& choice : kept) total += choice.probability;
  for (Choice& choice : kept) choice.probability /= total;
  return kept;
}

int32_t SamplerReference::Sample(const std::vector<float>& logits) {
  const bool draws = config_.temperature > 0;
  const bool uses_xtc = draws && config_.mirostat == 0 && config_.xtc_probability > 0;
  const bool fires = uses_xtc && random_.NextDouble() < double{config_.xtc_probability};
  const Choices choices = Distribution(logits, fires);
  const double uniform = draws ? random_.NextDouble() : 0;
  double sum = 0;
  const Choice* drawn = &choices.back();
  for (const Choice& choice : choices) {
    sum += choice.probability;
    if (sum > uniform) {
      drawn = &choice;
      break;
    }
  }
  if (draws && config_.mirostat != 0) mu_ -= config_.mirostat_eta * (-std::log2(drawn->probability) - config_.mirostat_tau);
  Accept(drawn->id);
  return drawn->id;
}

}  // namespace tarn
