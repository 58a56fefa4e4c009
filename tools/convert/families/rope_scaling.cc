#include "tools/convert/families/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr double kPi = 3.14159265358979323846;

// All angles by one factor (position interpolation, Chen et al. 2023).
void ScaleLinear(Fields* fields, RopeScaling* scaling) {
  const double factor = fields->PositiveNumber("factor");
  for (double& frequency : scaling->frequencies) frequency /= factor;
}

// Llama 3.1: pairs of long waves by one factor, those of short waves not at all, and a mix between them.
void ScaleLlama3(Fields* fields, RopeScaling* scaling) {
  const double factor = fields->PositiveNumber("factor");
  const double low = fields->PositiveNumber("low_freq_factor"), high = fields->PositiveNumber("high_freq_factor");
  const double trained = fields->Size("original_max_position_embeddings");
  if (high <= low) fields->FailAt("high_freq_factor", "it must be above low_freq_factor");
  for (double& frequency : scaling->frequencies) {
    const double turns = trained * frequency / (2 * kPi);  // within the context of training
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency *= (1 - kept) / factor + kept;
  }
}

// By which factor the context grew since training, which had `trained` positions.
double Growth(Fields* fields, const RopeScaling& scaling, double trained) {
  return fields->Has("factor") ? fields->PositiveNumber("factor") : scaling.positions / trained;
}

// YaRN (Peng et al. 2023): a ramp over the pairs between those that turn beta_fast and beta_slow times within the context of
// training.
void ScaleYarn(Fields* fields, RopeScaling* scaling) {
  const double trained = fields->Size("original_max_position_embeddings", scaling->positions);
  const double factor = Growth(fields, *scaling, trained);
  const double fast = fields->PositiveNumber("beta_fast", 32.0f), slow = fields->PositiveNumber("beta_slow", 1.0f);
  if (scaling->theta <= 1) fields->FailAt("rope_theta", "it must be above 1 for \"yarn\"");
  const bool truncate = fields->Bool("truncate", true);
  const auto growth = [factor](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; };
  const double mscale = fields->NonNegativeNumber("mscale", 0.0f), all = fields->NonNegativeNumber("mscale_all_dim", 0.0f);
  scaling->attention_factor = mscale > 0 && all > 0 ? growth(mscale) / growth(all) : growth(1);
  if (fields->Has("attention_factor")) scaling->attention_factor = fields->PositiveNumber("attention_factor");

  const double dim = 2.0 * scaling->pairs;
  const auto pair_of = [&](double turns) {
    return dim * std::log(trained / (turns * 2 * kPi)) / (2 * std::log(static_cast<double>(scaling->theta)));
  };
  double first = pair_of(fast), last = pair_of(slow);
  if (truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, dim - 1);
  if (first == last) last += 0.001;
  for (uint32_t i = 0; i < scaling->pairs; ++i) {
    const double ramp = std::clamp((i - first) / (last - first), 0.0, 1.0);
    scaling->frequencies[i] *= ramp / factor + (1 - ramp);
  }
}

std::vector<double> Factors(Fields* fields, const char* key, uint32_t pairs) {
  const Json* list = fields->Find(key);
  if (list == nullptr || !list->is_array() || list->size() != pairs) {
    fields->FailAt(key, "a list of " + std::to_string(pairs) + " numbers expected, one for each pair that turns");
  }
  std::vector<double> factors;
  for (const Json& factor : *list) {
    if (!factor.is_number() || !(factor.get<double>() > 0)) fields->FailAt(key, ValueText(factor) + " is not a number above 0");
    factors.push_back(factor.get<double>());
  }
  return factors;
}

// LongRoPE (Ding et al. 2024): a factor of each pair, of one list up to the context of training, of another one beyond. The
// original changes lists within a sequence, and so its keys; here the longest sequence that the model is converted for decides.
void ScaleLongrope(Fields* fields, RopeScaling* scaling) {
  const uint32_t trained =
      fields->Size("original_max_position_embeddings", scaling->trained != 0 ? scaling->trained : scaling->positions);
  double factor = Growth(fields, *scaling, trained);
  if (scaling->trained != 0) factor = static_cast<double>(scaling->positions) / scaling->trained;
  if (factor > 1 && trained > 1) scaling->attention_factor = std::sqrt(1 + std::log(factor) / std::log(trained));
  if (fields->Has("attention_factor")) scaling->attention_factor = fields->PositiveNumber("attention_factor");
  const std::vector<double> within = Factors(fields, "short_factor", scaling->pairs),
                            beyond = Factors(fields, "long_factor", scaling->pairs);
  const std::vector<double>& factors = scaling->context > trained ? beyond : within;
  for (uint32_t i = 0; i < scaling->pairs; ++i) scaling->frequencies[i] /= factors[i];
}

}  // namespace

std::vector<double> UnscaledFrequencies(const RopeScaling& scaling) {
  std::vector<double> frequencies(scaling.pairs);
  for (uint32_t i = 0; i < scaling.pairs; ++i)
    frequencies[i] = std::pow(static_cast<double>(scaling.theta), -static_cast<double>(i) / scaling.pairs);
  return frequencies;
}

void ReadRopeScaling(Fields* fields, RopeScaling* scaling) {
  scaling->theta = fields->PositiveNumber("rope_theta", scaling->theta);
  const float part = fields->Number("partial_rotary_factor", scaling->part);
  if (std::fabs(part - scaling->part) * static_cast<float>(scaling->pairs) >= 0.5f) {  // it is rounded to columns
    fields->FailAt("partial_rotary_factor",
                   std::to_string(part) + " is not the " + std::to_string(scaling->part) + " of the heads");
  }
  const std::string newer = fields->Text("rope_type", "default"), kind = fields->Text("type", newer);
  // Not every kind reads the second one; mrope tells positions in images apart, and there are none.
  for (const char* key : {"finetuned", "original_max_position_embeddings", "mrope_section", "mrope_interleaved"}) fields->Find(key);
  if (kind == "default") return;
  scaling->frequencies = UnscaledFrequencies(*scaling);
  if (kind == "linear") return ScaleLinear(fields, scaling);
  if (kind == "llama3") return ScaleLlama3(fields, scaling);
  if (kind == "yarn") return ScaleYarn(fields, scaling);
  if (kind == "longrope" || kind == "su") return ScaleLongrope(fields, scaling);
  fields->FailAt(fields->Has("type") ? "type" : "rope_type",
                 "\"" + kind + "\" is not supported, expected \"default\", \"linear\", \"llama3\", \"yarn\" or \"longrope\"");
}

}  // namespace tarn::convert
