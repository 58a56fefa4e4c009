#include "runtime/text/truncation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/text/visit_above.h"

namespace tarn {
namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status NanLogit(size_t id) { return Error(TARN_INVALID_ARGUMENT, "the logit of token %zu is NaN", id); }

Status NothingToDraw() { return Error(TARN_INVALID_ARGUMENT, "every logit is -inf: no token can be drawn"); }

template <typename Drop>
void RemoveIf(Candidates* candidates, Drop drop) {
  candidates->count = static_cast<size_t>(std::remove_if(candidates->begin(), candidates->end(), drop) - candidates->begin());
}

// Sum of exp(RelativeLog).
double TotalWeight(const Candidates& candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += std::exp(candidates.RelativeLog(candidate));
  return total;
}

// The order of candidates, and that by the distance of a log probability from the expected one.
struct ByLogit {
  bool operator()(const Candidate& a, const Candidate& b) const { return a < b; }
};
struct ByDistance {
  const Candidates* of;
  double expected;  // relative to the most probable one, as RelativeLog()

  double Distance(const Candidate& candidate) const { return std::abs(expected - of->RelativeLog(candidate)); }
  bool operator()(const Candidate& a, const Candidate& b) const {
    const double of_a = Distance(a), of_b = Distance(b);
    return of_a < of_b || (of_a == of_b && a < b);
  }
};

// Keeps the fewest candidates, in the order `first`, whose weights reach `wanted`; `ordered` says that they are in that order. Few
// tokens hold most of the probability: as many are ordered as are looked at, twice as many each time that is not enough.
template <typename First>
void KeepFewest(double wanted, bool is_ordered, First first, Candidates* candidates) {
  Candidate* const begin = candidates->begin();
  size_t ordered = is_ordered ? candidates->count : 0;
  size_t count = 0;
  double sum = 0;
  while (count < candidates->count && sum < wanted) {
    if (count == ordered) {
      ordered = std::min(candidates->count, std::max<size_t>(64, 2 * ordered));
      std::nth_element(begin + count, begin + (ordered - 1), candidates->end(), first);
      std::sort(begin + count, begin + ordered, first);
    }
    sum += std::exp(candidates->RelativeLog(begin[count++]));
  }
  candidates->count = count;
}

}  // namespace

Status Largest(Span<const float> logits, int32_t* token) {
  float best = -kInfinity;
  size_t best_id = kNone;
  size_t nan_id = kNone;
  VisitAbove(logits.data(), logits.size(), &best, [&](size_t id) {
    if (std::isnan(logits[id])) {
      nan_id = id;
      return false;
    }
    best = logits[id];
    best_id = id;
    return true;
  });
  if (nan_id != kNone) return NanLogit(nan_id);
  if (best_id == kNone) return NothingToDraw();
  *token = static_cast<int32_t>(best_id);
  return Ok();
}

double SigmaFloor(double n, Span<const float> logits) {
  double largest = -kInfinity, sum = 0;
  size_t count = 0;
  for (const float logit : logits) {
    if (logit == -kInfinity) continue;
    largest = std::max(largest, static_cast<double>(logit));
    sum += static_cast<double>(logit);
    ++count;
  }
  if (count == 0 || !std::isfinite(sum)) return largest;  // +inf beats all; what is NaN or empty is refused later
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const float logit : logits) {
    if (logit != -kInfinity) squares += (static_cast<double>(logit) - mean) * (static_cast<double>(logit) - mean);
  }
  return largest - n * std::sqrt(squares / static_cast<double>(count));
}

size_t TopKRoom(uint32_t top_k, uint32_t vocab_size) {
  // Twice k: CollectTopK() makes room by halving, which costs O(1) per candidate.
  return static_cast<size_t>(std::min<uint64_t>(2 * uint64_t{top_k}, vocab_size));
}

Status CollectTopK(Span<const float> logits, uint32_t top_k, double floor, Candidates* candidates) {
  const Span<Candidate> room = candidates->room;
  const bool cuts = top_k < logits.size();
  float limit = -kInfinity;  // of the logits seen so far, top_k are at least this; a later equal one has a higher id
  size_t nan_id = kNone;
  size_t count = 0;
  const auto halve = [&] {
    std::nth_element(room.begin(), room.begin() + (top_k - 1), room.begin() + count, ByLogit());
    limit = room[top_k - 1].logit;
    count = top_k;
  };
  VisitAbove(logits.data(), logits.size(), &limit, [&](size_t id) {
    if (std::isnan(logits[id])) {
      nan_id = id;
      return false;
    }
    if (static_cast<double>(logits[id]) < floor) return true;
    room[count++] = {logits[id], static_cast<int32_t>(id)};
    if (cuts && count == room.size()) halve();
    return true;
  });
  if (nan_id != kNone) return NanLogit(nan_id);
  if (count == 0) return NothingToDraw();
  if (cuts) {
    if (count > top_k) halve();
    std::sort(room.begin(), room.begin() + count, ByLogit());
  }
  candidates->count = count;
  candidates->ordered = cuts;
  candidates->max_logit = std::min_element(candidates->begin(), candidates->end())->logit;
  return Ok();
}

void KeepTypical(double share, Candidates* candidates) {
  double total = 0, sum = 0;
  for (const Candidate& candidate : *candidates) {
    const double log = candidates->RelativeLog(candidate);
    const double weight = std::exp(log);
    total += weight;
    if (weight > 0) sum += weight * log;
  }
  // -log p - H = sum / total - RelativeLog: the log of the total falls out.
  KeepFewest(share * total, false, ByDistance{candidates, sum / total}, candidates);
  std::sort(candidates->begin(), candidates->end(), ByLogit());
  candidates->ordered = true;
  candidates->max_logit = candidates->begin()->logit;
}

void KeepTopP(double share, Candidates* candidates) {
  KeepFewest(share * TotalWeight(*candidates), candidates->ordered, ByLogit(), candidates);
}

void KeepMinP(double share, Candidates* candidates) {
  const double least = std::log(share);
  RemoveIf(candidates, [&](const Candidate& candidate) { return candidates->RelativeLog(candidate) < least; });
}

void ExcludeTopChoices(double threshold, Candidates* candidates) {
  const double least = threshold * TotalWeight(*candidates);
  const auto is_choice = [=](const Candidate& candidate) { return std::exp(candidates->RelativeLog(candidate)) >= least; };
  const Candidate* kept = nullptr;  // the last of the choices
  for (const Candidate& candidate : *candidates) {
    if (is_choice(candidate) && (kept == nullptr || *kept < candidate)) kept = &candidate;
  }
  if (kept == nullptr) return;
  const Candidate last = *kept;
  RemoveIf(candidates, [=](const Candidate& candidate) { return candidate.id != last.id && is_choice(candidate); });
  candidates->max_logit = last.logit;
}

}  // namespace tarn
