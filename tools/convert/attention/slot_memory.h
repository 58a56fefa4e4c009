// The SlotMemory op, and the attributes that its systems share.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_SLOT_MEMORY_H_
#define TARN_TOOLS_CONVERT_ATTENTION_SLOT_MEMORY_H_

#include <limits>
#include <string>
#include <vector>

#include "tools/convert/attention/attention.h"

namespace tarn::convert {

// The attributes of the op, as schema/tarn.fbs has them; a parser sets those that its system has.
struct SlotMemory {
  format::SlotControl control;
  uint32_t num_slots;
  format::SlotActivation activation = format::SlotActivation::Exp;
  format::SlotNormalization normalization = format::SlotNormalization::Renorm;
  float logit_min = -std::numeric_limits<float>::infinity();
  float logit_max = std::numeric_limits<float>::infinity();
  bool mask_empty = false;
  float scale = 1;
  float gate_normalizer = 1;
  uint32_t max_len = 0;
  std::vector<uint32_t> positions = {};
  uint32_t iterations = 0;
  bool mass_bias = false;
};

// The op of the context's form, SlotMemory or NoncausalSlots, without its tensors: attributes, states. `system`: its name for
// people.
AttentionOp MakeSlotMemory(const SlotMemory& slots, const AttentionContext& context, const std::string& system);

// The projection that yields an op's logits of all slots.
LogitInput SlotLogits(const SlotMemory& slots, const format::Heads& heads, const char* name, const char* projection, Init init);

// num_slots of a head. Errors: more slots in all heads than a value is wide.
uint32_t ParseNumSlots(Fields* fields, const format::Heads& heads);
// max_len. Errors: fewer tokens than slots.
uint32_t ParseMaxLen(Fields* fields, uint32_t num_slots);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_SLOT_MEMORY_H_
