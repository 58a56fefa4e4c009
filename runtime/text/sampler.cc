#include "runtime/text/sampler.h"

#include <algorithm>
#include <limits>
#include <new>

#include "core/bump.h"
#include "runtime/text/truncation.h"

namespace tarn {
namespace {

uint32_t TopK(uint32_t vocab_size, const SamplerConfig& config) {
  return config.top_k == 0 || config.UsesMirostat() ? vocab_size : std::min(config.top_k, vocab_size);
}

}  // namespace

Sampler::Sampler(uint32_t vocab_size, const SamplerConfig& config)
    : config_(config),
      vocab_size_(vocab_size),
      top_k_(TopK(vocab_size, config)),
      random_(config.seed),
      mirostat_(StartOf(config)),
      edits_(vocab_size, config_) {}

Result<Sampler*> Sampler::Create(uint32_t vocab_size, const SamplerConfig& config, const Allocator& allocator) {
  TARN_RETURN_IF_ERROR(Validate(vocab_size, config));
  Bump measure;
  measure.Take(sizeof(Sampler));
  Sampler(vocab_size, config).TakeArrays(&measure);
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(allocator, measure.used(), "sampler"));
  Bump bump(block.bytes());
  Sampler* sampler = new (bump.Take(sizeof(Sampler))) Sampler(vocab_size, config);
  sampler->TakeArrays(&bump);
  sampler->edits_.CopyLists();
  sampler->block_ = std::move(block);
  return sampler;
}

void Sampler::Destroy(Sampler* sampler) {
  if (sampler == nullptr) return;
  const Block block = std::move(sampler->block_);  // outlives the object that lies in it
  sampler->~Sampler();
}

void Sampler::TakeArrays(Bump* bump) {
  edits_.TakeArrays(bump);
  if (config_.Greedy()) return;
  const size_t most = TopKRoom(top_k_, vocab_size_);
  candidates_.room = TakeArray<Candidate>(*bump, most);
  weights_ = TakeArray<double>(*bump, most);
}

Status Sampler::Sample(const float* logits, int32_t* token) {
  TARN_ASSIGN_OR_RETURN(const float* const edited, edits_.Apply(logits, config_.mask));
  const Point before = point();
  int32_t picked = 0;
  Status status = Pick(edited, &picked);
  if (status.ok() && config_.mask != nullptr) status = config_.mask->Accept(picked);  // which may have no room for what it allows
  if (!status.ok()) {
    SetPoint(before);
    return status;
  }
  edits_.Accept(picked);
  *token = picked;
  return Ok();
}

Status Sampler::Guess(const float* logits, int32_t* token) {
  TARN_ASSIGN_OR_RETURN(const float* const edited, edits_.Apply(logits, nullptr));
  TARN_RETURN_IF_ERROR(Pick(edited, token));
  edits_.Accept(*token);
  return Ok();
}

Status Sampler::Pick(const float* logits, int32_t* token) {
  const Span<const float> edited(logits, vocab_size_);
  if (config_.Greedy()) return Largest(edited, token);
  TARN_RETURN_IF_ERROR(Truncate(edited));
  *token = DrawToken();
  return Ok();
}

void Sampler::Accept(int32_t token) {
  if (token >= 0 && static_cast<uint32_t>(token) < vocab_size_) edits_.Accept(token);
}

void Sampler::Reset() {
  random_ = Pcg32(config_.seed);
  mirostat_ = StartOf(config_);
  edits_.Reset();
}

Status Sampler::Truncate(Span<const float> logits) {
  const bool cuts = !config_.UsesMirostat();
  const double floor =
      cuts && config_.top_n_sigma > 0 ? SigmaFloor(config_.top_n_sigma, logits) : -std::numeric_limits<double>::max();
  TARN_RETURN_IF_ERROR(CollectTopK(logits, top_k_, floor, &candidates_));
  if (!cuts) return Ok();
  if (config_.typical_p < 1) KeepTypical(config_.typical_p, &candidates_);
  if (config_.top_p < 1) KeepTopP(config_.top_p, &candidates_);
  if (config_.min_p > 0) KeepMinP(config_.min_p, &candidates_);
  if (config_.xtc_probability > 0 && random_.NextDouble() < static_cast<double>(config_.xtc_probability)) {
    ExcludeTopChoices(config_.xtc_threshold, &candidates_);
  }
  return Ok();
}

int32_t Sampler::DrawToken() {
  const double temperature = Temperature(config_, candidates_);
  if (config_.UsesMirostat()) return DrawByMirostat(config_, temperature, &mirostat_, &random_, weights_, &candidates_);
  return Draw(temperature, &random_, weights_, candidates_);
}

}  // namespace tarn
