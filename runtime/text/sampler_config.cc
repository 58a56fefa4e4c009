#include "runtime/text/sampler_config.h"

#include <limits>

namespace tarn {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();

struct Range {
  const char* words;
  float min;
  bool above;  // min itself is outside
  float max;
};
constexpr Range kFinite = {"finite", -kMost, false, kMost};
constexpr Range kAtLeast0 = {"finite and at least 0", 0, false, kMost};
constexpr Range kAtLeast1 = {"finite and at least 1", 1, false, kMost};
constexpr Range kAbove0 = {"finite and above 0", 0, true, kMost};
constexpr Range kFraction = {"in [0, 1]", 0, false, 1};
constexpr Range kShare = {"in (0, 1]", 0, true, 1};

// NaN is not inside.
bool Inside(float value, const Range& range) {
  return (range.above ? value > range.min : value >= range.min) && value <= range.max;
}

struct Number {
  const char* name;
  float SamplerConfig::*field;
  const Range& range;
};
constexpr Number kNumbers[] = {
    {"temperature", &SamplerConfig::temperature, kAtLeast0},
    {"top_p", &SamplerConfig::top_p, kShare},
    {"min_p", &SamplerConfig::min_p, kFraction},
    {"repeat_penalty", &SamplerConfig::repeat_penalty, kAbove0},
    {"frequency_penalty", &SamplerConfig::frequency_penalty, kFinite},
    {"presence_penalty", &SamplerConfig::presence_penalty, kFinite},
    {"dry_multiplier", &SamplerConfig::dry_multiplier, kAtLeast0},
    {"dry_base", &SamplerConfig::dry_base, kAtLeast1},
    {"top_n_sigma", &SamplerConfig::top_n_sigma, kAtLeast0},
    {"typical_p", &SamplerConfig::typical_p, kShare},
    {"xtc_probability", &SamplerConfig::xtc_probability, kFraction},
    {"xtc_threshold", &SamplerConfig::xtc_threshold, kShare},
    {"dynatemp_range", &SamplerConfig::dynatemp_range, kAtLeast0},
    {"dynatemp_exponent", &SamplerConfig::dynatemp_exponent, kAbove0},
    {"mirostat_tau", &SamplerConfig::mirostat_tau, kAbove0},
    {"mirostat_eta", &SamplerConfig::mirostat_eta, kAbove0},
};

Status CheckNumbers(const SamplerConfig& config) {
  for (const Number& number : kNumbers) {
    const float value = config.*number.field;
    if (Inside(value, number.range)) continue;
    return Error(TARN_INVALID_ARGUMENT, "%s is %g, must be %s", number.name, static_cast<double>(value), number.range.words);
  }
  return Ok();
}

Status CheckCount(const char* field, size_t count, uint32_t vocab_size) {
  if (count <= vocab_size) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s has %zu tokens, must have at most %u, the size of the vocabulary", field, count,
               vocab_size);
}

Status CheckToken(const char* field, size_t i, int32_t token, uint32_t vocab_size) {
  if (token >= 0 && static_cast<uint32_t>(token) < vocab_size) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s[%zu] is token %d, expected 0 to %u", field, i, token, vocab_size - 1);
}

Status CheckTokens(const char* field, Span<const int32_t> tokens, uint32_t vocab_size) {
  TARN_RETURN_IF_ERROR(CheckCount(field, tokens.size(), vocab_size));
  for (size_t i = 0; i < tokens.size(); ++i) TARN_RETURN_IF_ERROR(CheckToken(field, i, tokens[i], vocab_size));
  return Ok();
}

Status CheckBiases(Span<const TokenBias> biases, uint32_t vocab_size) {
  TARN_RETURN_IF_ERROR(CheckCount("logit_bias", biases.size(), vocab_size));
  for (size_t i = 0; i < biases.size(); ++i) {
    TARN_RETURN_IF_ERROR(CheckToken("logit_bias", i, biases[i].token, vocab_size));
    if (Inside(biases[i].bias, kFinite)) continue;
    return Error(TARN_INVALID_ARGUMENT, "logit_bias: the bias of token %d is %g, must be finite", biases[i].token,
                 static_cast<double>(biases[i].bias));
  }
  return Ok();
}

}  // namespace

Status Validate(uint32_t vocab_size, const SamplerConfig& config) {
  if (vocab_size == 0 || vocab_size > static_cast<uint32_t>(INT32_MAX)) {
    return Error(TARN_INVALID_ARGUMENT, "vocab_size is %u, must be in [1, %d]", vocab_size, INT32_MAX);
  }
  TARN_RETURN_IF_ERROR(CheckNumbers(config));
  if (config.mask != nullptr && config.mask->vocab_size() != vocab_size) {
    return Error(TARN_INVALID_ARGUMENT, "the grammar is for a vocabulary of %u tokens, the sampler for one of %u",
                 config.mask->vocab_size(), vocab_size);
  }
  if (config.dry_allowed_length == 0) return Error(TARN_INVALID_ARGUMENT, "dry_allowed_length is 0, must be at least 1");
  if (config.mirostat != 0 && config.mirostat != 2) {
    return Error(TARN_INVALID_ARGUMENT, "mirostat is %u, must be 0 (off) or 2", config.mirostat);
  }
  TARN_RETURN_IF_ERROR(CheckBiases(config.logit_bias, vocab_size));
  TARN_RETURN_IF_ERROR(CheckTokens("banned_tokens", config.banned_tokens, vocab_size));
  return CheckTokens("dry_breakers", config.dry_breakers, vocab_size);
}

}  // namespace tarn
