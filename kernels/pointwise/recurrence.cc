// The diagonal recurrence. Equation: kernels/recurrence.h.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/recurrence.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// a, and `rest` = 1 - a, which keeps its digits where a is near 1.
template <RecurrenceDecay kDecay>
HWY_INLINE VF DecayOf(DF d, VF gate, VF constant, VF& rest) {
  const VF one = hn::Set(d, 1.0f);
  if constexpr (kDecay == RecurrenceDecay::kSigmoid) {
    const VF room = hn::Sub(one, constant);
    rest = hn::Mul(room, Sigmoid(d, hn::Neg(gate)));
    return hn::MulAdd(room, Sigmoid(d, gate), constant);
  } else {
    const VF log = hn::Neg(hn::Mul(constant, Sigmoid(d, gate)));
    rest = hn::Neg(KeepNan(log, hn::Expm1(d, log)));
    return Exp(d, log);
  }
}

template <RecurrenceInput kInput>
HWY_INLINE VF Scaled(DF d, VF x, VF a, VF rest, bool first) {
  if constexpr (kInput == RecurrenceInput::kComplement) return hn::Mul(x, rest);
  if constexpr (kInput == RecurrenceInput::kRoot) {
    return first ? x : hn::Mul(x, hn::Sqrt(hn::Mul(rest, hn::Add(hn::Set(d, 1.0f), a))));
  }
  return x;
}

// Column by column, so that h stays in a register; a vector of columns is all tokens.
template <RecurrenceDecay kDecay, RecurrenceInput kInput>
void Run(const RecurrenceArgs& r) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < r.width; i += lanes) {
    const size_t left = r.width - i;
    const VF constant = r.constant == nullptr ? hn::Zero(d) : hn::LoadN(d, r.constant + i, left);
    VF h = hn::LoadN(d, r.state + i, left);
    for (size_t t = 0; t < r.tokens; ++t) {
      const VF x = hn::LoadN(d, r.x + t * r.x_stride + i, left);
      VF rest = hn::Zero(d);
      const VF a = DecayOf<kDecay>(d, hn::LoadN(d, r.gate + t * r.gate_stride + i, left), constant, rest);
      h = hn::MulAdd(a, h, Scaled<kInput>(d, x, a, rest, r.first && t == 0));
      hn::StoreN(h, d, r.y + t * r.y_stride + i, left);
    }
    hn::StoreN(h, d, r.state + i, left);
  }
}

template <RecurrenceDecay kDecay>
void RunInput(const RecurrenceArgs& r) {
  switch (r.input) {
    case RecurrenceInput::kWhole:
      return Run<kDecay, RecurrenceInput::kWhole>(r);
    case RecurrenceInput::kComplement:
      return Run<kDecay, RecurrenceInput::kComplement>(r);
    case RecurrenceInput::kRoot:
      return Run<kDecay, RecurrenceInput::kRoot>(r);
  }
}

void DiagonalRecurrence(const RecurrenceArgs& r) {
  if (r.decay == RecurrenceDecay::kSigmoid) {
    RunInput<RecurrenceDecay::kSigmoid>(r);
  } else {
    RunInput<RecurrenceDecay::kExponential>(r);
  }
}

void FillRecurrence(Kernels& table) { table.diagonal_recurrence = DiagonalRecurrence; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillRecurrence);
void FillRecurrence(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillRecurrence)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
