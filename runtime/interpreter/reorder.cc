#include "runtime/interpreter/reorder.h"

#include <cstring>

namespace tarn {

void Reordering::Plan(const uint32_t* parents) {
  constexpr uint32_t kDone = UINT32_MAX;
  const uint32_t batch = static_cast<uint32_t>(wanted_.size());
  count_ = 0;
  for (uint32_t& wanted : wanted_) wanted = 0;
  for (uint32_t i = 0; i < batch; ++i) wanted_[parents[i]] += parents[i] != i;
  // What nobody wants may be overwritten; that may free its parent.
  for (uint32_t i = 0; i < batch; ++i) {
    for (uint32_t to = i; wanted_[to] == 0 && parents[to] != to;) {
      Add(to, parents[to]);
      wanted_[to] = kDone;
      to = parents[to];
      --wanted_[to];
    }
  }
  // The others stand in circles: each is wanted by exactly one.
  for (uint32_t i = 0; i < batch; ++i) {
    if (wanted_[i] == kDone || parents[i] == i) continue;
    Add(kSpare, i);
    uint32_t to = i;
    for (; parents[to] != i; to = parents[to]) {
      Add(to, parents[to]);
      wanted_[to] = kDone;
    }
    Add(to, kSpare);
    wanted_[to] = kDone;
  }
}

void Reordering::Apply(uint8_t* state, uint64_t bytes) const {
  uint8_t spare[4096];
  for (uint64_t begin = 0; begin < bytes; begin += sizeof(spare)) {
    const size_t piece = static_cast<size_t>(bytes - begin < sizeof(spare) ? bytes - begin : sizeof(spare));
    const auto place = [&](uint32_t sequence) { return sequence == kSpare ? spare : state + sequence * bytes + begin; };
    for (size_t i = 0; i < count_; ++i) std::memcpy(place(moves_[i].to), place(moves_[i].from), piece);
  }
}

}  // namespace tarn
