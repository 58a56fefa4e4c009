// Local-to-global attention: l2g_global remembers the tokens at fixed positions in slots, l2g_window sees them beside a window.
#include <limits>
#include <vector>

#include "tools/convert/attention/cache_attention.h"
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {
namespace {

// Positions count tokens from 0 at the reset.
std::vector<uint32_t> ParseGlobalPositions(Fields* fields) {
  return fields->Ascending("global_positions", std::numeric_limits<uint32_t>::max(), kMaxSlots);
}

}  // namespace

AttentionOp ParseL2gGlobal(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::Global, 0};
  slots.positions = ParseGlobalPositions(fields);
  slots.num_slots = static_cast<uint32_t>(slots.positions.size());
  fields->Fix("num_slots", slots.num_slots);
  fields->Fix("mask_empty", true);
  slots.mask_empty = true;
  slots.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "l2g_global");
}

AttentionOp ParseL2gWindow(Fields* fields, const AttentionContext& context) {
  CacheAttention cache;
  cache.policy = format::CachePolicy::L2g;
  cache.window = fields->Size("window");
  cache.positions = ParseGlobalPositions(fields);
  fields->Fix("mask_empty", true);
  cache.scale = fields->Number("scale", DefaultScale(context.heads));
  const auto globals = static_cast<uint32_t>(cache.positions.size());
  return MakeCacheAttention(cache, context, "l2g_window", {{"", cache.window}, {"global_", globals}});
}

}  // namespace tarn::convert
