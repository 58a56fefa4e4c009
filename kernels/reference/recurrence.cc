// The diagonal recurrence (MATH 1.10).
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

// a and 1 - a, which keeps its digits where a is near 1.
struct Decay {
  double a, rest;
};

Decay DecayOf(RecurrenceDecay kind, double gate, double constant) {
  const double open = 1.0 / (1.0 + std::exp(-gate)), shut = 1.0 / (1.0 + std::exp(gate));
  if (kind == RecurrenceDecay::kSigmoid) return {constant + (1.0 - constant) * open, (1.0 - constant) * shut};
  return {std::exp(-constant * open), -std::expm1(-constant * open)};
}

double InputScale(RecurrenceInput kind, const Decay& decay, bool first) {
  if (kind == RecurrenceInput::kComplement) return decay.rest;
  if (kind == RecurrenceInput::kRoot && !first) return std::sqrt(decay.rest * (1.0 + decay.a));
  return 1.0;
}

}  // namespace

void DiagonalRecurrence(const RecurrenceArgs& r) {
  for (size_t t = 0; t < r.tokens; ++t) {
    for (size_t i = 0; i < r.width; ++i) {
      const double constant = r.constant == nullptr ? 0.0 : r.constant[i];
      const Decay decay = DecayOf(r.decay, r.gate[t * r.gate_stride + i], constant);
      const double input = InputScale(r.input, decay, r.first && t == 0) * r.x[t * r.x_stride + i];
      r.state[i] = static_cast<float>(decay.a * r.state[i] + input);
      r.y[t * r.y_stride + i] = r.state[i];
    }
  }
}

}  // namespace tarn::reference
