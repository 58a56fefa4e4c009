// Clustering of keys and values into slots: online, where the first tokens open a slot each and later ones join that of the nearest
// mean key; or over all keys of a sequence at once, with Lloyd's k-means.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseClusteringOnline(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::ClusteringOnline, ParseNumSlots(fields, context.heads)};
  fields->Fix("init", "first_n");
  slots.mask_empty = fields->Bool("mask_empty", true);
  slots.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "clustering_online");
}

AttentionOp ParseKvClustering(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::Clustering, ParseNumSlots(fields, context.heads)};
  slots.iterations = fields->Size("iterations", 10, kMaxClusterIterations);
  fields->Fix("init", "evenly_spaced");
  slots.mass_bias = fields->Bool("mass_bias", false);
  fields->Fix("mask_empty", true);
  slots.mask_empty = true;
  slots.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "kv_clustering");
}

}  // namespace tarn::convert
