// Attributes of a slot memory: read once, checked, in the kernels' terms.
#ifndef TARN_RUNTIME_OPS_ATTENTION_SLOT_SLOT_ATTRIBUTES_H_
#define TARN_RUNTIME_OPS_ATTENTION_SLOT_SLOT_ATTRIBUTES_H_

#include "runtime/ops/op.h"

namespace tarn {

struct SlotAttributes {
  // Errors: TARN_BAD_FORMAT, which names the field.
  static Result<SlotAttributes> Read(const format::SlotMemory& table);

  bool has_logits() const {
    return control == format::SlotControl::AbcMlp || control == format::SlotControl::Gsa ||
           control == format::SlotControl::LunaCausal;
  }
  bool has_index() const { return control == format::SlotControl::Assigned; }
  bool has_schedule() const { return control == format::SlotControl::Linformer; }
  // Inputs after v: one or none, and its shape. Errors: TARN_BAD_FORMAT.
  uint32_t control_inputs() const { return has_logits() || has_index() ? 1 : 0; }
  Status ExpectControlInput(const PrepareContext& context, uint32_t index, uint64_t kv_heads) const;
  // Copies the slots of `tokens` tokens. Which op they come from is the file's choice, so they are held inside the range here.
  void ReadIndex(const int32_t* from, size_t stride, size_t tokens, int32_t* index) const;

  format::SlotControl control;
  size_t slots;  // n
  SlotActivation activation;
  SlotNormalization normalization;
  float logit_min;
  float logit_max;
  float gate_normalizer;
  bool mask_empty;
  float scale;
  uint64_t max_len;           // 0: unbounded
  const uint32_t* positions;  // [n], Global
  uint32_t iterations;        // Clustering, >= 1
  bool mass_bias;             // Clustering
};

// The attributes in a few words, for people.
void DescribeSlots(const format::SlotMemory& table, char* text, size_t text_bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_SLOT_SLOT_ATTRIBUTES_H_
