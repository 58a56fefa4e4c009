// Diagonal recurrences (MATH 1.10): h_t = a_t h_(t-1) + s(a_t) x_t for every column by itself. Where the decay a comes from, and
// what the input is multiplied by.
#ifndef TARN_VARIANTS_RECURRENCE_H_
#define TARN_VARIANTS_RECURRENCE_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// The numbers of the lists are those of model files: new entries go at the end.

struct RecurrenceDecayInfo {
  const char* name;
  const char* tensor;  // a constant [n] that it reads
  bool required;       // else a file may leave it out: zeros
  const char* equation;
};

#define TARN_RECURRENCE_DECAYS(X)                                                            \
  X(Sigmoid, "sigmoid", "floor", false, "a = floor + (1 - floor) sigmoid(gate) (SRU, HGRN)") \
  X(Exponential, "exponential", "rate", true, "log a = -rate sigmoid(gate) (RG-LRU)")

struct RecurrenceInputInfo {
  const char* name;
  const char* equation;
};

#define TARN_RECURRENCE_INPUTS(X)          \
  X(Whole, "whole", "s = 1")               \
  X(Complement, "complement", "s = 1 - a") \
  X(Root, "root", "s = sqrt(1 - a^2), and 1 for the first token")

#define TARN_ENUMERATOR(id, ...) k##id,
enum class RecurrenceDecay : uint8_t { TARN_RECURRENCE_DECAYS(TARN_ENUMERATOR) };
enum class RecurrenceInput : uint8_t { TARN_RECURRENCE_INPUTS(TARN_ENUMERATOR) };
#undef TARN_ENUMERATOR

#define TARN_INFO(id, ...) {__VA_ARGS__},
inline constexpr RecurrenceDecayInfo kRecurrenceDecays[] = {TARN_RECURRENCE_DECAYS(TARN_INFO)};
inline constexpr RecurrenceInputInfo kRecurrenceInputs[] = {TARN_RECURRENCE_INPUTS(TARN_INFO)};
#undef TARN_INFO

constexpr const RecurrenceDecayInfo& InfoOf(RecurrenceDecay decay) { return kRecurrenceDecays[static_cast<size_t>(decay)]; }

}  // namespace tarn

#endif  // TARN_VARIANTS_RECURRENCE_H_
