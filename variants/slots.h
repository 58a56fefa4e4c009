// Slot memories (MATH F2): K~ <- a K~ + b x k, V~ <- a V~ + b x v, o = V~^T softmax(scale K~ q + bias). Their attributes, and what
// follows from these: inputs, constants, states, forms. Controls, which make a and b, are in slot_controls.h.
#ifndef TARN_VARIANTS_SLOTS_H_
#define TARN_VARIANTS_SLOTS_H_

#include "variants/attribute.h"
#include "variants/limits.h"
#include "variants/slot_controls.h"
#include "variants/state.h"

namespace tarn {

// The numbers of the lists below are those of model files: new entries go at the end.

// alpha of ABC-MLP, from a logit
#define TARN_SLOT_ACTIVATIONS(X) \
  X(Exp, "exp")                  \
  X(Relu, "relu")                \
  X(Sigmoid, "sigmoid")

#define TARN_SLOT_NORMALIZATIONS(X)                                             \
  X(Renorm, "renorm") /* running sums divided by the current sum of controls */ \
  X(Frozen, "frozen") /* every write keeps the weight it was written with */

#define TARN_ENUMERATOR(id, name) k##id,
#define TARN_NAME(id, name) name,
enum class SlotActivation : uint8_t { TARN_SLOT_ACTIVATIONS(TARN_ENUMERATOR) };
enum class SlotNormalization : uint8_t { TARN_SLOT_NORMALIZATIONS(TARN_ENUMERATOR) };
inline constexpr const char* kSlotActivationNames[] = {TARN_SLOT_ACTIVATIONS(TARN_NAME)};
inline constexpr const char* kSlotNormalizationNames[] = {TARN_SLOT_NORMALIZATIONS(TARN_NAME)};
#undef TARN_ENUMERATOR
#undef TARN_NAME

// Every attribute but num_slots and positions, by its name in table SlotMemory of schema/tarn.fbs. CHOICE(type, name, entries of
// its list, default), SIZE(type, name, most, who reads it: ControlAttributes), NUMBER(name, default, bounds), FLAG(name)
#define TARN_SLOT_ATTRIBUTES(CHOICE, SIZE, NUMBER, FLAG)                                       \
  SIZE(uint64_t, max_len, kMaxRows, kReadsMaxLen) /* one token more: an error */               \
  SIZE(uint32_t, iterations, kMaxClusterIterations, kReadsClusters)                            \
  NUMBER(gate_normalizer, 1, Bounds::kPositive)                                                \
  NUMBER(scale, 1, Bounds::kFinite) /* of q . K~ */                                            \
  NUMBER(logit_max, kInfinity, Bounds::kNotNan)                                                \
  NUMBER(logit_min, -kInfinity, Bounds::kNotNan) /* clamp of the logits */                     \
  FLAG(mass_bias)                                /* log(members) is added to a slot's logit */ \
  CHOICE(SlotControl, control, kSlotControls, kAbcMlp)                                         \
  FLAG(mask_empty)                                                                             \
  FLAG(own_value_control) /* V~ has logits or a schedule of its own */                         \
  CHOICE(SlotNormalization, normalization, kSlotNormalizationNames, kRenorm)                   \
  CHOICE(SlotActivation, activation, kSlotActivationNames, kExp)

struct SlotAttributes {
  uint32_t num_slots = 0;  // n
#define TARN_CHOICE(type, name, list, fallback) type name = type::fallback;
#define TARN_SIZE(type, name, ...) type name = 0;
#define TARN_NUMBER(name, fallback, bounds) float name = fallback;
#define TARN_FLAG(name) bool name = false;
  TARN_SLOT_ATTRIBUTES(TARN_CHOICE, TARN_SIZE, TARN_NUMBER, TARN_FLAG)
#undef TARN_CHOICE
#undef TARN_SIZE
#undef TARN_NUMBER
#undef TARN_FLAG

  constexpr const SlotControlInfo& info() const { return InfoOf(control); }
  constexpr bool reads(uint32_t attributes) const { return (info().attributes & attributes) != 0; }
  constexpr bool has_logits() const { return info().input == ControlInput::kLogits; }
  constexpr bool has_index() const { return info().input == ControlInput::kIndex; }
  constexpr uint32_t controls() const { return own_value_control ? 2 : 1; }  // of K~, and of V~ if that has its own
  constexpr uint32_t control_inputs() const { return info().input != ControlInput::kNone ? controls() : 0; }
  constexpr bool has_schedule() const { return info().tensor == ControlTensor::kSchedule; }
  constexpr uint32_t schedules() const { return has_schedule() ? controls() : 0; }
  constexpr bool has_mass() const {
    return info().mass == SlotMass::kKept || (info().mass == SlotMass::kKeptIfMasked && mask_empty);
  }

  // Frozen weights are those of the moment of writing.
  constexpr bool has_noncausal_form() const {
    return info().noncausal != NoncausalForm::kNone && normalization == SlotNormalization::kRenorm;
  }
  // Of the noncausal form: -inf for an empty slot, or log(members).
  constexpr bool has_noncausal_bias() const { return mask_empty || reads(kReadsClusters); }

  // Why the attributes cannot stand together; nullptr: they can.
  constexpr const char* Conflict() const {
    if (!(logit_min <= logit_max && logit_min < kInfinity && logit_max > -kInfinity)) return "logit_min and logit_max are no range";
    if (mass_bias && !reads(kReadsClusters)) return "mass_bias is for clustering";
    if (own_value_control && !reads(kReadsValueControl)) return "own_value_control is for abc_mlp and linformer";
    return nullptr;
  }
};

inline constexpr FloatAttribute<SlotAttributes> kSlotNumbers[] = {
#define TARN_IGNORE(...)
#define TARN_NUMBER(name, fallback, bounds) {#name, &SlotAttributes::name, bounds},
    TARN_SLOT_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_NUMBER, TARN_IGNORE)
#undef TARN_NUMBER
#undef TARN_IGNORE
};

// The states of the causal form, in their order. K~ is transposed, so that the logits of all slots grow lane by lane.
constexpr uint32_t kMaxSlotStates = 4;
constexpr uint32_t StateCount(const SlotAttributes& a) { return 2u + (a.has_mass() ? a.controls() : 0); }
// Fills the first StateCount(a) of them, of d and dv elements per key and value.
constexpr void StatesOf(const SlotAttributes& a, uint64_t kv_heads, uint64_t d, uint64_t dv, StateInfo (&states)[kMaxSlotStates]) {
  states[0] = {"K", 3, {kv_heads, d, a.num_slots}, StoredAs::kF32OrF16};
  states[1] = {"V", 3, {kv_heads, a.num_slots, dv}, StoredAs::kF32OrF16};
  if (a.has_mass()) states[2] = {"mass", 2, {kv_heads, a.num_slots}, StoredAs::kF32};
  if (a.has_mass() && a.own_value_control) states[3] = {"value_mass", 2, {kv_heads, a.num_slots}, StoredAs::kF32};
}

}  // namespace tarn

#endif  // TARN_VARIANTS_SLOTS_H_
