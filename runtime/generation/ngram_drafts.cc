#include "runtime/generation/ngram_drafts.h"

#include <algorithm>
#include <iterator>

namespace tarn {

constexpr uint32_t NgramDrafts::kContexts[];
constexpr uint32_t NgramDrafts::kCounts;

void NgramDrafts::TakeArrays(Bump* bump, uint32_t capacity) {
  history_ = TakeArray<int32_t>(*bump, capacity);
  for (Span<Place>& table : tables_) table = TakeArray<Place>(*bump, uint64_t{2} * capacity);
}

void NgramDrafts::Clear() {
  for (const Span<Place>& table : tables_) std::fill(table.begin(), table.end(), Place{});
  for (auto& of_table : records_) {
    for (auto& of_count : of_table) std::fill(std::begin(of_count), std::end(of_count), Record{});
  }
  end_ = streak_ = 0;
}

void NgramDrafts::Record::Add(bool is_right) {
  constexpr float kMemory = 1.0f - 1.0f / 64;
  right = right * kMemory + (is_right ? 1.0f : 0.0f);
  all = all * kMemory + 1.0f;
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

void NgramDrafts::Add(int32_t token) {
  bool is_draft = true;  // that of the first context that is known
  for (size_t table = 0; table < kTables; ++table) {
    if (end_ < Reach(table)) continue;
    Place& place = PlaceOf(table, end_, nullptr);
    uint64_t source;
    const bool is_known = Matches(place, table, end_, nullptr, &source), is_right = is_known && at(source) == token;
    if (is_known && is_draft) {
      records_[table][place.count][StreakClass(streak_)].Add(is_right);
      streak_ = is_right ? streak_ + 1 : 0;
      is_draft = false;
    }
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
  if (is_draft) streak_ = 0;
  at(end_) = token;
  ++end_;
}

size_t NgramDrafts::Draft(size_t most, int32_t* tokens, float* probabilities) const {
  for (size_t i = 0; i < most; ++i) {
    const uint64_t end = end_ + i;
    size_t table = 0;
    uint64_t source = 0;
    const Place* place = nullptr;
    for (; table < kTables; ++table) {
      if (end < Reach(table)) continue;
      place = &PlaceOf(table, end, tokens);
      if (Matches(*place, table, end, tokens, &source)) break;
    }
    if (table == kTables) return i;
    tokens[i] = at(source);
    probabilities[i] = records_[table][place->count][StreakClass(streak_ + i)].share();
  }
  return most;
}

}  // namespace tarn
