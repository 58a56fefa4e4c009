// Clustering of keys and values into slots: online, where the first tokens open a slot each and later ones join that of the nearest
// mean key; or over all keys of a sequence at once, with Lloyd's k-means.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseClusteringOnline(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kClusteringOnline, DefaultScale(context.heads));
  fields->Fix("init", "first_n");
  return MakeSlotMemory(slots, context, "clustering_online");
}

AttentionOp ParseKvClustering(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kClustering, DefaultScale(context.heads));
  fields->Fix("init", "evenly_spaced");
  return MakeSlotMemory(slots, context, "kv_clustering");
}

}  // namespace tarn::convert
