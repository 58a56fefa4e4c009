// Attributes of a slot memory: read once and checked. What they are, and what follows from them, is in variants/slots.h.
#ifndef TARN_RUNTIME_OPS_ATTENTION_SLOT_SLOT_ATTRIBUTES_H_
#define TARN_RUNTIME_OPS_ATTENTION_SLOT_SLOT_ATTRIBUTES_H_

#include "runtime/ops/op.h"
#include "variants/slots.h"

namespace tarn {

// Errors: TARN_BAD_FORMAT, which names the field.
Result<SlotAttributes> ReadSlotAttributes(const format::SlotMemory& table);

// The positions [n] of a control that reads them; else nullptr. Errors: TARN_BAD_FORMAT.
Result<const uint32_t*> ReadSlotPositions(const format::SlotMemory& table, const SlotAttributes& a);

// The shapes of the inputs after v, where the control has any. Errors: TARN_BAD_FORMAT.
Status ExpectControlInputs(const PrepareContext& context, const SlotAttributes& a, uint32_t index, uint64_t kv_heads);

// The schedules [max_len, n] of K~, and of V~ where it has its own; nullptr where there is none. Errors: TARN_BAD_FORMAT.
Status ExpectSchedules(const PrepareContext& context, const SlotAttributes& a, const float* (&schedules)[2]);

// Copies the slots of `tokens` tokens. Which op they come from is the file's choice, so they are held inside the range here.
void ReadSlotIndex(const int32_t* from, size_t stride, size_t tokens, size_t slots, int32_t* index);

// The attributes in a few words, for people.
void DescribeSlots(const format::SlotMemory& table, char* text, size_t text_bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_SLOT_SLOT_ATTRIBUTES_H_
