#include "runtime/generation/ngram_drafts.h"

namespace tarn {

constexpr uint32_t NgramDrafts::kOrders[];

void NgramDrafts::TakeArrays(Bump* bump, uint32_t capacity) {
  history_ = TakeArray<int32_t>(*bump, capacity);
  for (Span<uint32_t>& table : tables_) table = TakeArray<uint32_t>(*bump, uint64_t{2} * capacity);
}

void NgramDrafts::Clear() {
  for (const Span<uint32_t>& table : tables_) {
    for (uint32_t& place : table) place = 0;
  }
  end_ = match_ = 0;
  for (Record& record : records_) record = {};
}

void NgramDrafts::Record::Add(bool is_right) {
  constexpr float kMemory = 1.0f - 1.0f / 64;
  right = right * kMemory + (is_right ? 1.0f : 0.0f);
  all = all * kMemory + 1.0f;
}

// 2, 3, 4, 5, 6 to 7, 8 to 11, 12 to 15, 16 to 23, ... and all that are longer.
size_t NgramDrafts::LengthClass(uint64_t match) {
  if (match < 6) return match < 2 ? 0 : static_cast<size_t>(match - 2);
  size_t index = 4;
  for (uint64_t least = 6, step = 2; index + 1 < kLengths && match >= least + step; ++index) {
    least += step;
    if ((least & (least - 1)) == 0) step = least / 2;
  }
  return index;
}

// Multiplication by odd constants; positions are compared in full, so that a collision costs a draft and no more.
uint32_t& NgramDrafts::Place(size_t table, uint64_t end) const {
  uint64_t hash = kOrders[table];
  for (uint64_t i = end - kOrders[table]; i < end; ++i) {
    hash = (hash ^ static_cast<uint32_t>(at(i))) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return tables_[table][static_cast<size_t>(hash >> 16) & (tables_[table].size() - 1)];
}

bool NgramDrafts::Matches(uint64_t position, uint32_t order) const {
  if (position < order || end_ - (position - order) > history_.size()) return false;
  for (uint32_t i = 1; i <= order; ++i) {
    if (at(position - i) != at(end_ - i)) return false;
  }
  return true;
}

void NgramDrafts::Add(int32_t token) {
  if (match_ > 0) {
    const bool is_right = at(source_) == token;
    records_[LengthClass(match_)].Add(is_right);
    match_ = is_right ? match_ + 1 : 0;
    ++source_;
  }
  for (size_t table = 0; table < kTables; ++table) {
    if (end_ >= kOrders[table]) Place(table, end_) = static_cast<uint32_t>(end_);
  }
  at(end_) = token;
  ++end_;
  Search();
}

void NgramDrafts::Search() {
  for (size_t table = 0; table < kTables; ++table) {
    const uint32_t order = kOrders[table];
    if (order <= match_) return;
    if (end_ < order) continue;
    const auto age = static_cast<uint32_t>(static_cast<uint32_t>(end_) - Place(table, end_));
    if (age == 0 || age > end_ || !Matches(end_ - age, order)) continue;
    source_ = end_ - age;
    match_ = order;
    return;
  }
}

size_t NgramDrafts::Draft(size_t most, int32_t* tokens, float* probabilities) const {
  if (match_ == 0) return 0;
  float shares[kLengths];
  float share = kShareOfNone;
  for (size_t i = 0; i < kLengths; ++i) shares[i] = share = records_[i].Share(share);
  for (size_t i = 0; i < most; ++i) {
    const uint64_t from = source_ + i;
    tokens[i] = from < end_ ? at(from) : tokens[from - end_];
    probabilities[i] = shares[LengthClass(match_ + i)];
  }
  return most;
}

}  // namespace tarn
