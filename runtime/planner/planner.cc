#include "runtime/planner/planner.h"

#include <algorithm>

#include "core/arith.h"

namespace tarn {
namespace {

constexpr uint32_t kEnd = UINT32_MAX;

bool LiveTogether(const PlannedBuffer& a, const PlannedBuffer& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

Result<uint64_t> PlanArena(Span<PlannedBuffer> buffers) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    buffers[i].index = i;
    buffers[i].offset = 0;
    if (!CheckedAdd(sum, buffers[i].bytes, &sum) || !CheckedAdd(sum, kAlignment, &sum) || sum > INT64_MAX) {
      return Error(TARN_OUT_OF_MEMORY, "the values of the program do not fit an address space");
    }
  }
  std::sort(buffers.begin(), buffers.end(), [](const PlannedBuffer& a, const PlannedBuffer& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.index < b.index;
  });
  // Placed buffers form a list in order of their offsets, so that gaps are seen in one walk.
  uint32_t head = kEnd;
  uint64_t arena_bytes = 0;
  for (uint32_t current = 0; current < buffers.size() && buffers[current].bytes > 0; ++current) {
    PlannedBuffer& buffer = buffers[current];
    uint64_t offset = 0;
    for (uint32_t i = head; i != kEnd; i = buffers[i].next) {
      const PlannedBuffer& other = buffers[i];
      if (!LiveTogether(buffer, other)) continue;
      if (offset + buffer.bytes <= other.offset) break;  // the gap before `other` is large enough
      const uint64_t end = AlignUp(other.offset + other.bytes);
      if (end > offset) offset = end;
    }
    buffer.offset = offset;
    if (offset + buffer.bytes > arena_bytes) arena_bytes = offset + buffer.bytes;
    uint32_t* link = &head;
    while (*link != kEnd && buffers[*link].offset <= offset) link = &buffers[*link].next;
    buffer.next = *link;
    *link = current;
  }
  std::sort(buffers.begin(), buffers.end(), [](const PlannedBuffer& a, const PlannedBuffer& b) { return a.index < b.index; });
  return AlignUp(arena_bytes);
}

}  // namespace tarn
