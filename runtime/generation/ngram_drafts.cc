#include "runtime/generation/ngram_drafts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tarn {

constexpr uint32_t NgramDrafts::kContexts[];
constexpr uint32_t NgramDrafts::kCounts;

void NgramDrafts::TakeArrays(Bump* bump, uint32_t capacity) {
  history_ = TakeArray<int32_t>(*bump, capacity);
  for (Span<Place>& table : tables_) table = TakeArray<Place>(*bump, capacity);
}

void NgramDrafts::Clear() {
  for (const Span<Place>& table : tables_) std::fill(table.begin(), table.end(), Place{});
  for (auto& of_table : votes_) std::fill(std::begin(of_table), std::end(of_table), DraftRecord{});
  std::fill(std::begin(drafts_), std::end(drafts_), DraftRecord{});
  end_ = 0;
  is_copy_ = is_here_ = false;
}

uint64_t NgramDrafts::Reach(size_t table) {
  uint64_t reach = 0;
  for (uint32_t left = kContexts[table]; left != 0; left >>= 1) ++reach;
  return reach;
}

// Multiplication by odd constants; contexts are compared in full, so that a collision costs a draft and no more.
NgramDrafts::Place& NgramDrafts::PlaceOf(size_t table, uint64_t end, const int32_t* drafts) const {
  uint64_t hash = 0;
  for (uint32_t i = 1, left = kContexts[table]; left != 0; ++i, left >>= 1) {
    if ((left & 1) == 0) continue;
    hash = (hash ^ static_cast<uint32_t>(TokenAt(end - i, drafts))) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return tables_[table][static_cast<size_t>(hash >> 16) & (tables_[table].size() - 1)];
}

bool NgramDrafts::Matches(const Place& place, size_t table, uint64_t end, const int32_t* drafts, uint64_t* source) const {
  const uint64_t age = (end_ - place.position) & kPositions;
  if (age == 0 || age + Reach(table) > std::min<uint64_t>(end_, history_.size())) return false;
  *source = end_ - age;
  for (uint32_t i = 1, left = kContexts[table]; left != 0; ++i, left >>= 1) {
    if ((left & 1) != 0 && at(*source - i) != TokenAt(end - i, drafts)) return false;
  }
  return true;
}

void NgramDrafts::Find(uint64_t end, const int32_t* drafts, Found (&found)[kTables]) const {
  for (size_t table = 0; table < kTables; ++table) {
    found[table] = {};
    if (end < Reach(table)) continue;
    Place& place = PlaceOf(table, end, drafts);
    uint64_t source;
    found[table].place = &place;
    if (!Matches(place, table, end, drafts, &source)) continue;
    found[table].is_known = true;
    found[table].token = at(source);
  }
}

void NgramDrafts::FindHere() {
  if (!is_here_) Find(end_, nullptr, here_);
  is_here_ = true;
}

bool NgramDrafts::Choose(uint64_t end, const int32_t* drafts, Choice* choice) {
  const uint64_t ahead = end - end_;
  if (is_copy_) {
    *choice = {TokenAt(copy_ + ahead, drafts), LengthClass(length_ + ahead)};
    return true;
  }
  if (ahead == 0) {
    FindHere();
    return Vote(here_, choice);
  }
  Found found[kTables];
  Find(end, drafts, found);
  return Vote(found, choice);
}

bool NgramDrafts::Vote(const Found (&found)[kTables], Choice* choice) const {
  // A vote that is right once in eight times weighs nothing: so often a token of the text is that of some context by chance.
  constexpr float kLeast = 0.02f, kChance = -2;
  constexpr float kSteps = 1.2f;
  int32_t tokens[kTables];
  float weights[kTables];
  size_t count = 0;
  for (size_t table = 0; table < kTables; ++table) {
    if (!found[table].is_known) continue;
    const DraftRecord& record = votes_[table][found[table].place->count];
    const float share = std::min(std::max(record.share(kPriorShare), kLeast), 1 - kLeast);
    const size_t i = static_cast<size_t>(std::find(tokens, tokens + count, found[table].token) - tokens);
    if (i == count) {
      tokens[count] = found[table].token;
      weights[count++] = 0;
    }
    weights[i] += std::log(share / (1 - share)) - kChance;
  }
  if (count == 0) return false;
  const float* const most = std::max_element(weights, weights + count);
  const float step = std::min(std::max(*most * kSteps, 0.0f), static_cast<float>(kWeights - 1));
  *choice = {tokens[most - weights], kLengths + static_cast<size_t>(step)};
  return true;
}

void NgramDrafts::Copy(int32_t token) {
  constexpr size_t kLongest = 0;  // of the contexts
  is_copy_ = is_copy_ && at(copy_) == token;
  at(end_) = token;
  ++end_;
  if (is_copy_) {
    ++copy_;
    ++length_;
  } else if (end_ >= Reach(kLongest)) {
    is_copy_ = Matches(PlaceOf(kLongest, end_, nullptr), kLongest, end_, nullptr, &copy_);
    length_ = 0;
  }
}

void NgramDrafts::Add(int32_t token) {
  Choice choice;
  if (Choose(end_, nullptr, &choice)) drafts_[choice.kind].Add(choice.token == token);
  FindHere();
  for (size_t table = 0; table < kTables; ++table) {
    if (here_[table].place == nullptr) continue;
    Place& place = *here_[table].place;
    const bool is_known = here_[table].is_known, is_right = is_known && here_[table].token == token;
    if (is_known) votes_[table][place.count].Add(is_right);
    if (is_right) {
      place.count = std::min<uint32_t>(place.count + 1u, kCounts - 1) & (kCounts - 1);
    } else if (is_known && place.count > 1) {
      place.count = 1;
      continue;
    } else {
      place.count = 0;
    }
    place.position = static_cast<uint32_t>(end_ & kPositions);
  }
  is_here_ = false;
  Copy(token);
}

size_t NgramDrafts::Draft(size_t most, int32_t* tokens, float* probabilities) {
  constexpr float kLeastReached = 1.0f / 64;
  float reached = 1;
  size_t count = 0;
  Choice choice;
  while (count < most && reached >= kLeastReached && Choose(end_ + count, tokens, &choice)) {
    tokens[count] = choice.token;
    probabilities[count] = drafts_[choice.kind].share(kPriorShare);
    reached *= probabilities[count++];
  }
  return count;
}

}  // namespace tarn
