// tarn eval with a masked model: of each block of a text some tokens are hidden, and scored.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

#include "tools/common/progress.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/eval.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr uint64_t kDefaultBlock = 512;
constexpr double kHidden = 0.15;  // of a block, rounded; at least one

// Draws positions of a block, each at most once: a sampler whose tokens are the positions, equally probable. So the draws are those
// of the library's generator, the same on every machine.
class HiddenPositions {
 public:
  HiddenPositions(uint32_t block, uint64_t seed) : logits_(block) {
    tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
    config.temperature = 1;
    config.top_k = 0;
    config.top_p = 1;
    config.min_p = 0;
    config.seed = seed;
    tarn_error error;
    tarn_sampler* sampler = nullptr;
    Check(tarn_sampler_create(block, &config, &sampler, &error), error);
    sampler_.reset(sampler);
  }

  // Of the first `size` positions, in order.
  std::vector<uint32_t> Draw(size_t size) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    std::fill(logits_.begin(), logits_.end(), kNever);
    std::fill_n(logits_.begin(), size, 0.0f);
    std::vector<uint32_t> positions(Count(size));
    for (uint32_t& position : positions) {
      int32_t drawn = 0;
      tarn_error error;
      Check(tarn_sampler_sample(sampler_.get(), logits_.data(), &drawn, &error), error);
      position = static_cast<uint32_t>(drawn);
      logits_[position] = kNever;
    }
    std::sort(positions.begin(), positions.end());
    return positions;
  }

  static uint32_t Count(size_t size) {
    return std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(kHidden * static_cast<double>(size))));
  }

 private:
  std::vector<float> logits_;
  std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)> sampler_{nullptr, tarn_sampler_destroy};
};

int32_t MaskToken(const EvalOptions& options, const Model& model) {
  if (options.mask >= 0) {
    RequireIds({options.mask}, model, model.info().source_vocab_size, "eval", "--mask");
    return options.mask;
  }
  if (model.info().mask_token >= 0) return model.info().mask_token;
  throw Failure(model.path() + ": the model does not say which token is its mask: give it with --mask ID");
}

struct HiddenSums {
  uint64_t tokens = 0;
  tarn::tools::Score score;
  uint32_t block = 0;  // the longest one

  uint64_t count() const { return tokens; }
  void Add(const HiddenSums& other) {
    tokens += other.tokens;
    score.Add(other.score);
    block = std::max(block, other.block);
  }
};

// The sum over all hidden tokens.
tarn::tools::Score ScoreHidden(const EvalOptions& options, const Model& model, const Tokens& tokens, uint32_t block,
                               const std::string& step) {
  const int32_t mask = MaskToken(options, model);
  const uint32_t vocab_size = model.info().vocab_size;
  tarn_session_config config = SessionConfig(options.session);
  config.max_source = block;
  config.max_logits_rows = HiddenPositions::Count(block);
  const Session session = CreateSession(model, config);
  HiddenPositions hidden(block, options.seed);
  tarn::tools::Score score;
  tarn::tools::Progress progress(stderr, isatty(STDERR_FILENO) == 1, step, tokens.size(), "tokens");
  for (size_t begin = 0; begin < tokens.size(); begin += block) {
    StopIfInterrupted();
    const size_t size = std::min<size_t>(block, tokens.size() - begin);
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
    Tokens source(first, first + static_cast<std::ptrdiff_t>(size));
    const std::vector<uint32_t> positions = hidden.Draw(size);
    for (const uint32_t position : positions) source[position] = mask;
    const float* logits = nullptr;
    tarn_error error;
    Check(tarn_session_fill(session.get(), source.data(), size, positions.data(), positions.size(), &logits, &error), error);
    for (size_t i = 0; i < positions.size(); ++i) {
      score.nats += tarn::tools::Loss(logits + i * vocab_size, vocab_size, static_cast<uint32_t>(tokens[begin + positions[i]]));
    }
    score.scored += positions.size();
    progress.Advance(size, Format("%.4f nats/token", score.Mean()));
  }
  if (!std::isfinite(score.nats)) throw Failure("the loss is not finite: neither are the logits");
  return score;
}

Measured<HiddenSums> MeasureHidden(const EvalOptions& options, const Model& model, const std::string& file) {
  const Tokens tokens = tarn::tools::EvaluationTokens(model.get(), options.range, ReadFile(file), FileName(file), 1);
  const uint64_t wanted = options.range.block != 0 ? options.range.block : std::min(kDefaultBlock, model.info().max_source_tokens);
  Measured<HiddenSums> found;
  found.sums.tokens = tokens.size();
  found.sums.block = static_cast<uint32_t>(std::min<uint64_t>({wanted, tokens.size(), UINT32_MAX}));
  const auto start = Clock::now();
  found.sums.score = ScoreHidden(options, model, tokens, found.sums.block, EvalStep(options, file));
  found.seconds = SecondsSince(start);
  return found;
}

}  // namespace

int EvalMasked(const EvalOptions& options, const Model& model) {
  return EvalFiles<HiddenSums>(
      options, model, "tokens", [&](const std::string& file) { return MeasureHidden(options, model, file); },
      [&](const HiddenSums& sums) -> std::vector<EvalNumber> {
        const double mean = sums.score.Mean(), perplexity = std::exp(mean);
        return {{"tokens", sums.tokens, "tokens", std::to_string(sums.tokens)},
                {"scored", sums.score.scored, "hidden", std::to_string(sums.score.scored)},
                {"nats_per_token", mean, "nats/hidden token", Format("%.6f", mean)},
                {"perplexity", perplexity, "perplexity", Format("%.4f", perplexity)},
                {"block", sums.block},
                {"seed", options.seed}};
      });
}

}  // namespace tarn_cli
