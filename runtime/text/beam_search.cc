#include "runtime/text/beam_search.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <new>

#include "core/bump.h"
#include "runtime/text/log_sum_exp.h"
#include "runtime/text/visit_above.h"

namespace tarn {
namespace {

Status AtLeastOne(const char* field, uint32_t value) {
  return value >= 1 ? Ok() : Error(TARN_INVALID_ARGUMENT, "%s is 0, must be at least 1", field);
}

Status CheckToken(const char* field, int32_t token, int32_t least, uint32_t vocab_size) {
  if (token >= least && token < static_cast<int32_t>(vocab_size)) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s is %d, must be in [%d, %u)", field, token, least, vocab_size);
}

Status Validate(const BeamConfig& config) {
  TARN_RETURN_IF_ERROR(AtLeastOne("sources", config.sources));
  TARN_RETURN_IF_ERROR(AtLeastOne("beams", config.beams));
  TARN_RETURN_IF_ERROR(AtLeastOne("max_output_tokens", config.max_output_tokens));
  if (uint64_t{config.sources} * config.beams > UINT32_MAX) {
    return Error(TARN_INVALID_ARGUMENT, "%u sources of %u beams: must be at most %u sequences", config.sources, config.beams,
                 UINT32_MAX);
  }
  if (config.vocab_size == 0 || config.vocab_size > static_cast<uint32_t>(INT32_MAX)) {
    return Error(TARN_INVALID_ARGUMENT, "vocab_size is %u, must be in [1, %d]", config.vocab_size, INT32_MAX);
  }
  if (!(config.length_penalty >= 0 && std::isfinite(config.length_penalty))) {  // NaN fails
    return Error(TARN_INVALID_ARGUMENT, "length_penalty is %g, must be finite and at least 0",
                 static_cast<double>(config.length_penalty));
  }
  TARN_RETURN_IF_ERROR(CheckToken("bos_token", config.bos_token, 0, config.vocab_size));
  return CheckToken("eos_token", config.eos_token, -1, config.vocab_size);
}

// The arrays of a search of more than about 2^58 elements cannot be had, and their size in bytes could not be told.
Status CheckLinks(const BeamConfig& config) {
  uint64_t links = 0;
  if (CheckedMul(uint64_t{config.sources} * config.beams, uint64_t{config.max_output_tokens} * 64, &links)) return Ok();
  return Error(TARN_OUT_OF_MEMORY, "beam search: %u sources of %u beams and %u tokens are more than memory can address",
               config.sources, config.beams, config.max_output_tokens);
}

// The logit that a continuation must exceed to be more probable than `least`; a little lower, so that rounding cannot turn one
// away: what passes is compared exactly.
float LogitLimit(double least, double base, double largest) {
  const double slack = 1e-6 * (std::abs(least) + std::abs(base) + std::abs(largest) + 1);
  return static_cast<float>(std::clamp(least - base + largest - slack, double{-FLT_MAX}, double{FLT_MAX}));
}

}  // namespace

BeamSearch::BeamSearch(const BeamConfig& config) : config_(config) {}

Result<uint64_t> BeamSearch::SizeBytes(const BeamConfig& config) {
  TARN_RETURN_IF_ERROR(Validate(config));
  TARN_RETURN_IF_ERROR(CheckLinks(config));
  Bump measure;
  measure.Take(sizeof(BeamSearch));
  BeamSearch(config).TakeArrays(measure);
  return measure.used();
}

Result<BeamSearch*> BeamSearch::Create(const BeamConfig& config, const Allocator& allocator) {
  TARN_ASSIGN_OR_RETURN(const uint64_t size_bytes, SizeBytes(config));
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(allocator, size_bytes, "beam search"));
  Bump bump(block.bytes());
  BeamSearch* search = new (bump.Take(sizeof(BeamSearch))) BeamSearch(config);
  search->TakeArrays(bump);
  search->block_ = std::move(block);
  search->Reset();
  return search;
}

void BeamSearch::Destroy(BeamSearch* search) {
  if (search == nullptr) return;
  const Block block = std::move(search->block_);  // outlives the object that lies in it
  search->~BeamSearch();
}

void BeamSearch::TakeArrays(Bump& bump) {
  const uint64_t sequences = uint64_t{config_.sources} * config_.beams;
  tokens_ = TakeArray<int32_t>(bump, sequences);
  parents_ = TakeArray<uint32_t>(bump, sequences);
  log_probs_ = TakeArray<double>(bump, sequences);
  rows_ = TakeArray<Row>(bump, sequences);
  finished_ = TakeArray<Finished>(bump, sequences);
  live_ = TakeArray<uint32_t>(bump, config_.sources);
  finished_count_ = TakeArray<uint32_t>(bump, config_.sources);
  links_ = TakeArray<Link>(bump, sequences * config_.max_output_tokens);
  candidates_ = TakeArray<Candidate>(bump, 2 * uint64_t{config_.beams});
  endings_ = TakeArray<Candidate>(bump, config_.beams);
  output_ = TakeArray<int32_t>(bump, config_.max_output_tokens);
}

void BeamSearch::Reset() {
  steps_ = 0;
  running_ = config_.sources;
  StopSequences(0, static_cast<uint32_t>(tokens_.size()));
  std::fill(live_.begin(), live_.end(), 1);
  std::fill(finished_count_.begin(), finished_count_.end(), 0);
  std::fill(log_probs_.begin(), log_probs_.end(), 0.0);
}

// Those that are not alive are fed something that every vocabulary has, and stay where they are.
void BeamSearch::StopSequences(uint32_t begin, uint32_t end) {
  for (uint32_t sequence = begin; sequence < end; ++sequence) {
    tokens_[sequence] = config_.bos_token;
    parents_[sequence] = sequence;
  }
}

double BeamSearch::Penalty(uint32_t length) const {
  return std::pow((5.0 + length) / 6.0, static_cast<double>(config_.length_penalty));
}

Status BeamSearch::Advance(const float* logits) {
  if (done()) return Error(TARN_INVALID_ARGUMENT, "beam search: all sources are done");
  TARN_RETURN_IF_ERROR(MeasureRows(logits));
  ++steps_;
  for (uint32_t source = 0; source < config_.sources; ++source) {
    if (live_[source] > 0) AdvanceSource(source, logits);
  }
  return Ok();
}

// All rows before anything changes.
Status BeamSearch::MeasureRows(const float* logits) {
  for (uint32_t source = 0; source < config_.sources; ++source) {
    const uint32_t first = source * config_.beams;
    for (uint32_t sequence = first; sequence < first + live_[source]; ++sequence) {
      LogSumExp row;
      const Status status = Summarize(logits + size_t{sequence} * config_.vocab_size, config_.vocab_size, &row);
      if (!status.ok()) return status.In("sequence %u", sequence);
      rows_[sequence] = {log_probs_[sequence] - row.log_sum, row.largest};
    }
  }
  return Ok();
}

void BeamSearch::AdvanceSource(uint32_t source, const float* logits) {
  const size_t continuations = CollectContinuations(source, logits);
  const size_t endings = config_.eos_token >= 0 ? CollectEndings(source, logits) : 0;
  FinishEndings(source, continuations, endings);
  GoOn(source, continuations);
  if (live_[source] > 0 && !CannotImprove(source)) return;
  live_[source] = 0;
  StopSequences(source * config_.beams, (source + 1) * config_.beams);
  --running_;
}

// The `beams` first of all that do not end, in order, into candidates_. Returns how many there are.
size_t BeamSearch::CollectContinuations(uint32_t source, const float* logits) {
  Candidate* const begin = candidates_.begin();
  const size_t beams = config_.beams;
  size_t count = 0;
  bool full = false;  // there are `beams` candidates, of which `last` is the last, and must be beaten
  Candidate last{};
  const auto limit_of = [&](const Row& row) {
    return full ? LogitLimit(last.log_prob, row.base, row.largest) : -std::numeric_limits<float>::infinity();
  };
  const auto halve = [&] {
    std::nth_element(begin, begin + (beams - 1), begin + count);
    last = begin[beams - 1];
    count = beams;
    full = true;
  };
  const uint32_t first = source * config_.beams;
  for (uint32_t sequence = first; sequence < first + live_[source]; ++sequence) {
    const Row row = rows_[sequence];
    const float* x = logits + size_t{sequence} * config_.vocab_size;
    float limit = limit_of(row);
    VisitAbove(x, config_.vocab_size, &limit, [&](size_t id) {
      const double log_prob = row.base + (static_cast<double>(x[id]) - static_cast<double>(row.largest));
      const Candidate candidate{log_prob, sequence, x[id], static_cast<int32_t>(id)};
      if (candidate.token == config_.eos_token || (full && !(candidate < last))) return true;
      begin[count++] = candidate;
      if (count == candidates_.size()) {
        halve();
        limit = limit_of(row);
      }
      return true;
    });
  }
  if (count > beams) halve();
  std::sort(begin, begin + count);
  return count;
}

// Every live sequence with the end token, in order, into endings_. Returns how many there are.
size_t BeamSearch::CollectEndings(uint32_t source, const float* logits) {
  size_t count = 0;
  const uint32_t first = source * config_.beams;
  for (uint32_t sequence = first; sequence < first + live_[source]; ++sequence) {
    const Row row = rows_[sequence];
    const float logit = logits[size_t{sequence} * config_.vocab_size + static_cast<uint32_t>(config_.eos_token)];
    if (std::isinf(logit)) continue;
    const double log_prob = row.base + (static_cast<double>(logit) - static_cast<double>(row.largest));
    endings_[count++] = {log_prob, sequence, logit, config_.eos_token};
  }
  std::sort(endings_.begin(), endings_.begin() + count);
  return count;
}

// Merges the two lists as far as the `beams` first of both.
void BeamSearch::FinishEndings(uint32_t source, size_t continuations, size_t endings) {
  size_t continuation = 0;
  size_t ending = 0;
  while (ending < endings && continuation + ending < config_.beams) {
    if (continuation < continuations && candidates_[continuation] < endings_[ending]) {
      ++continuation;
    } else {
      const Candidate& end = endings_[ending++];
      Finish(source, end.log_prob, steps_, steps_ - 1, end.parent);
    }
  }
}

// The candidates become the source's sequences; after the last step they are finished.
void BeamSearch::GoOn(uint32_t source, size_t continuations) {
  const uint32_t first = source * config_.beams;
  const uint32_t live = static_cast<uint32_t>(continuations);
  Link* const links = links_.data() + size_t{steps_ - 1} * tokens_.size();
  for (uint32_t i = 0; i < live; ++i) {
    const Candidate& candidate = candidates_[i];
    const uint32_t sequence = first + i;
    links[sequence] = {candidate.token, candidate.parent};
    tokens_[sequence] = candidate.token;
    parents_[sequence] = candidate.parent;
    log_probs_[sequence] = candidate.log_prob;
    if (steps_ == config_.max_output_tokens) Finish(source, candidate.log_prob, steps_, steps_, sequence);
  }
  StopSequences(first + live, first + config_.beams);
  live_[source] = steps_ == config_.max_output_tokens ? 0 : live;
}

// Into its place among the finished ones, if it is one of the `beams` best.
void BeamSearch::Finish(uint32_t source, double log_prob, uint32_t length, uint32_t count, uint32_t sequence) {
  const double score = log_prob / Penalty(length);
  Finished* const begin = finished_.data() + size_t{source} * config_.beams;
  uint32_t* const finished = &finished_count_[source];
  Finished* const end = begin + *finished;
  Finished* const place = std::upper_bound(begin, end, score, [](double s, const Finished& other) { return s > other.score; });
  if (place == begin + config_.beams) return;
  const bool full = *finished == config_.beams;
  std::move_backward(place, full ? end - 1 : end, full ? end : end + 1);
  *place = {score, count, sequence};
  if (!full) ++*finished;
}

bool BeamSearch::CannotImprove(uint32_t source) const {
  if (finished_count_[source] < config_.beams) return false;
  if (config_.beams == 1) return true;
  const size_t first = size_t{source} * config_.beams;
  return finished_[first + config_.beams - 1].score >= log_probs_[first] / Penalty(config_.max_output_tokens);
}

Result<Hypothesis> BeamSearch::Get(uint32_t source, uint32_t rank) {
  if (source >= config_.sources) {
    return Error(TARN_INVALID_ARGUMENT, "source is %u, must be below %u", source, config_.sources);
  }
  if (rank >= finished_count_[source]) {
    return Error(TARN_NOT_FOUND, "rank is %u, source %u has %u finished hypotheses", rank, source, finished_count_[source]);
  }
  const Finished& finished = finished_[size_t{source} * config_.beams + rank];
  uint32_t sequence = finished.sequence;
  for (size_t i = finished.count; i-- > 0;) {
    const Link& link = links_[i * tokens_.size() + sequence];
    output_[i] = link.token;
    sequence = link.parent;
  }
  return Hypothesis{output_.subspan(0, finished.count), finished.score};
}

}  // namespace tarn
