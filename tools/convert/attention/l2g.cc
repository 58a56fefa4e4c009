// Local-to-global attention: l2g_global remembers the tokens at fixed positions in slots, l2g_window sees them beside a window.
#include "tools/convert/attention/cache_attention.h"
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {
AttentionOp ParseL2gGlobal(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kGlobal, DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "l2g_global");
}

AttentionOp ParseL2gWindow(Fields* fields, const AttentionContext& context) {
  fields->Fix("mask_empty", true);
  return MakeCacheAttention(ParseCachePolicy(fields, context, CachePolicy::kL2g), context, "l2g_window");
}

}  // namespace tarn::convert
