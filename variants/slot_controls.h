// Controls of slot memories (MATH F2): a line each. A control says, token by token, what the n slots of one key/value head keep of
// K~ and V~ (decay a) and how much of the token they take (write b). The numbers that model files store are the places in this
// list, so new ones go at the end.
//
// To add one: a line here, kernels/slot_controls/<name>.cc with the SIMD version and the scalar reference, and a golden file.
// Everything else is made from the line: enums, kernel tables, what the runtime and the converter check, states, tests.
#ifndef TARN_VARIANTS_SLOT_CONTROLS_H_
#define TARN_VARIANTS_SLOT_CONTROLS_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// What the op reads after q, k and v: a logit per slot [Hkv*n], or the slot of each head [Hkv] I32.
enum class ControlInput : uint8_t { kNone, kLogits, kIndex };

// The constant that it reads: a row of writes per token, [max_len, n].
enum class ControlTensor : uint8_t { kNone, kSchedule };

// What the slots have taken so far, a state `mass` [Hkv, n] F32 beside K~ and V~; kKeptIfMasked: with mask_empty alone.
enum class SlotMass : uint8_t { kNone, kKept, kKeptIfMasked };

// What config.json may say of mask_empty, whether a slot that was never written takes no part in the softmax: false, as every token
// writes into every slot; true; or either, with a default.
enum class EmptySlots : uint8_t { kNever, kSeen, kMasked, kAlwaysMasked };

// What becomes of K~ and V~: sums that forget nothing, running means, sums that forget, or what is written once. It decides what
// they may be stored as.
enum class SlotContent : uint8_t { kSum, kMean, kDecaying, kOnce };

// The form without an order of the tokens: each key has a share in every slot, or is a member of one.
enum class NoncausalForm : uint8_t { kNone, kShares, kMembers };

// Attributes of SlotAttributes that only some controls read, as bits.
enum ControlAttributes : uint32_t {
  kReadsNone = 0,
  kReadsActivation = 1,  // activation, normalization, logit_min, logit_max
  kReadsGateNormalizer = 2,
  kReadsMaxLen = 4,
  kReadsPositions = 8,
  kReadsClusters = 16,      // iterations, mass_bias
  kReadsValueControl = 32,  // own_value_control
};

struct SlotControlInfo {
  bool causal;
  const char* name;
  ControlInput input;
  ControlTensor tensor;
  SlotMass mass;
  EmptySlots empty;
  SlotContent content;
  bool chunks;  // MATH 0.2 "F2": the decays of a chunk are factors; else a chunk is a loop of steps
  NoncausalForm noncausal;
  uint32_t attributes;  // ControlAttributes
  const char* equation;
};

// CAUSAL controls have kernels of their own; NONCAUSAL ones are of the noncausal op alone.
#define TARN_SLOT_CONTROLS(CAUSAL, NONCAUSAL)                                                                                    \
  CAUSAL(AbcMlp, "abc_mlp", ControlInput::kLogits, ControlTensor::kNone, SlotMass::kKept, EmptySlots::kSeen, SlotContent::kMean, \
         true, NoncausalForm::kShares, kReadsActivation | kReadsValueControl,                                                    \
         "K~_j = sum_i alpha_ij k_i / sum_i alpha_ij, alpha = exp, relu or sigmoid of the logit (ABC, section 3.2; MATH 1.8.1)") \
  CAUSAL(Linformer, "linformer", ControlInput::kNone, ControlTensor::kSchedule, SlotMass::kNone, EmptySlots::kNever,             \
         SlotContent::kSum, true, NoncausalForm::kShares, kReadsMaxLen | kReadsValueControl,                                     \
         "a = 1, b = schedule[t] (Linformer; ABC, Table 1; MATH 1.8.2)")                                                         \
  CAUSAL(Assigned, "assigned", ControlInput::kIndex, ControlTensor::kNone, SlotMass::kKeptIfMasked, EmptySlots::kSeen,           \
         SlotContent::kSum, true, NoncausalForm::kMembers, kReadsNone, "a = 1, b = 1 in slot index[t] (ABC-RD; MATH 1.8.3)")     \
  CAUSAL(Global, "global", ControlInput::kNone, ControlTensor::kNone, SlotMass::kNone, EmptySlots::kAlwaysMasked,                \
         SlotContent::kOnce, true, NoncausalForm::kNone, kReadsPositions,                                                        \
         "a = 1, b_j = 1 where t = positions[j] (L2G; MATH 1.8.6)")                                                              \
  CAUSAL(CompressiveMean, "compressive_mean", ControlInput::kNone, ControlTensor::kNone, SlotMass::kKept, EmptySlots::kMasked,   \
         SlotContent::kMean, true, NoncausalForm::kMembers, kReadsMaxLen,                                                        \
         "running mean in slot floor(n t / max_len) (compressive transformer, mean pooling; MATH 1.8.7 a)")                      \
  CAUSAL(ClusteringOnline, "clustering_online", ControlInput::kNone, ControlTensor::kNone, SlotMass::kKept, EmptySlots::kMasked, \
         SlotContent::kMean, false, NoncausalForm::kNone, kReadsNone,                                                            \
         "t < n opens slot t; then running mean in the slot whose K~ is nearest to k, the first of equals (MATH 1.8.8)")         \
  CAUSAL(Gsa, "gsa", ControlInput::kLogits, ControlTensor::kNone, SlotMass::kNone, EmptySlots::kNever, SlotContent::kDecaying,   \
         true, NoncausalForm::kNone, kReadsGateNormalizer,                                                                       \
         "a = e^f, b = 1 - e^f, f = logsigmoid(logit) / gate_normalizer (GSA; MATH 0.1, 2.2)")                                   \
  CAUSAL(LunaCausal, "luna_causal", ControlInput::kLogits, ControlTensor::kNone, SlotMass::kNone, EmptySlots::kNever,            \
         SlotContent::kMean, true, NoncausalForm::kNone, kReadsNone,                                                             \
         "a = t / (t + 1), b = log2(1 + 2^logit) / (t + 1) (Luna; MATH 1.9.5)")                                                  \
  NONCAUSAL(Clustering, "clustering", ControlInput::kNone, ControlTensor::kNone, SlotMass::kNone, EmptySlots::kAlwaysMasked,     \
            SlotContent::kMean, false, NoncausalForm::kMembers, kReadsClusters, "Lloyd's k-means over all keys (MATH 1.8.8)")

enum class SlotControl : uint8_t {
#define TARN_ENUMERATOR(id, ...) k##id,
  TARN_SLOT_CONTROLS(TARN_ENUMERATOR, TARN_ENUMERATOR)
#undef TARN_ENUMERATOR
};

inline constexpr SlotControlInfo kSlotControls[] = {
#define TARN_CAUSAL(id, ...) {true, __VA_ARGS__},
#define TARN_NONCAUSAL(id, ...) {false, __VA_ARGS__},
    TARN_SLOT_CONTROLS(TARN_CAUSAL, TARN_NONCAUSAL)
#undef TARN_CAUSAL
#undef TARN_NONCAUSAL
};
constexpr size_t kSlotControlCount = sizeof(kSlotControls) / sizeof(kSlotControls[0]);

constexpr const SlotControlInfo& InfoOf(SlotControl control) { return kSlotControls[static_cast<size_t>(control)]; }

// Where the kernels of a causal control stand among those of all: the number of causal controls before it.
constexpr size_t CausalPlace(size_t control) {
  size_t place = 0;
  for (size_t i = 0; i < control; ++i) place += kSlotControls[i].causal;
  return place;
}
constexpr size_t CausalPlace(SlotControl control) { return CausalPlace(static_cast<size_t>(control)); }
constexpr size_t kCausalControlCount = CausalPlace(kSlotControlCount);

}  // namespace tarn

#endif  // TARN_VARIANTS_SLOT_CONTROLS_H_
