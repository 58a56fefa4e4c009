// The SlotMemory op, and how the systems that are one read their attributes.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_SLOT_MEMORY_H_
#define TARN_TOOLS_CONVERT_ATTENTION_SLOT_MEMORY_H_

#include <string>
#include <vector>

#include "tools/convert/attention/attention.h"
#include "variants/slots.h"

namespace tarn::convert {

struct SlotMemory : SlotAttributes {
  std::vector<uint32_t> positions;
  bool control_of_heads = false;  // logits are projected from k and v, not from the layer input
};

// Of a config.json: what its control reads, and no more; `scale` is the default of that.
// Errors: a form that the control has not, values out of range.
SlotMemory ParseSlotMemory(Fields* fields, const AttentionContext& context, SlotControl control, float scale);

// The op of the context's form, SlotMemory or NoncausalSlots: attributes, control logits by "control_proj", schedule, states.
// Without the index of a control that reads one. `system`: its name for people.
AttentionOp MakeSlotMemory(const SlotMemory& slots, const AttentionContext& context, const std::string& system);

// The index is drawn by a RandomSlots op from a seed, which is a field, the layer, the head and the token's number.
void AddRandomIndex(Fields* fields, const SlotMemory& slots, const AttentionContext& context, AttentionOp* op);

// What the logits of a control are projected by: control_sharing, whether all layers have one control_proj, and of rows of the
// layer control_bias. Behind MakeSlotMemory.
void ParseControlProjection(Fields* fields, AttentionOp* op);

// num_slots of a head. Errors: more slots in all heads than a value is wide.
uint32_t ParseNumSlots(Fields* fields, const format::Heads& heads);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_SLOT_MEMORY_H_
