// The controls of slot memory other than ABC-MLP.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"
#include "kernels/slot_limits.h"

namespace tarn::reference {
namespace {

float EmptyBias(const SlotControlArgs& a, bool empty) { return a.mask_empty && empty ? -HUGE_VALF : 0.0f; }

// ---- decay 1: what a token writes is the weight of its chunk form, with carry = gain = 1

// One token: weight [n] and bias [n]. `token` counts from the first of the call.
using AdditiveRow = void (*)(const SlotControlArgs& a, size_t token, float* weight, float* bias);

template <AdditiveRow kRow>
void AdditiveStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  std::fill(decay, decay + a.slots, 1.0f);
  kRow(a, 0, write, bias);
}

template <AdditiveRow kRow>
bool AdditiveChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  std::fill(carry, carry + a.tokens * a.slots, 1.0f);
  std::fill(gain, gain + a.tokens * a.slots, 1.0f);
  for (size_t t = 0; t < a.tokens; ++t) kRow(a, t, weight + t * a.slots, bias + t * a.slots);
  return true;
}

// Linformer (MATH 1.8.2): b_t is row t of the schedule; the first token writes every slot.
void LinformerRow(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const float* row = a.schedule + static_cast<size_t>(a.tokens_seen + token) * a.slots;
  std::copy(row, row + a.slots, weight);
  std::fill(bias, bias + a.slots, 0.0f);
}

// ABC-RD (MATH 1.8.3): b_t = e_{i_t}. The members only tell whether a slot is empty: that they stop at 2^24 in f32 does no harm.
void AssignedRow(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const size_t slot = static_cast<size_t>(a.index[token * a.index_stride]);
  std::fill(weight, weight + a.slots, 0.0f);
  weight[slot] = 1.0f;
  if (a.mask_empty) a.mass[slot] += 1.0f;
  for (size_t j = 0; j < a.slots; ++j) bias[j] = EmptyBias(a, a.mask_empty && !(a.mass[j] > 0.0f));
}

// L2G's global part (MATH 1.8.6): b_t = e_i at the position of the i-th global token.
void GlobalRow(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const uint64_t t = a.tokens_seen + token;
  for (size_t j = 0; j < a.slots; ++j) {
    weight[j] = a.positions[j] == t ? 1.0f : 0.0f;
    bias[j] = EmptyBias(a, a.positions[j] > t);
  }
}

// ---- running means

// Compressive transformer, mean pooling (MATH 1.8.7 a): token t joins slot floor(n t / max_len).
uint64_t PooledSlot(const SlotControlArgs& a, size_t token) { return a.slots * (a.tokens_seen + token) / a.max_len; }

// The token becomes a member of `slot`, which keeps the mean of its members.
void JoinSlot(const SlotControlArgs& a, uint64_t slot, float* decay, float* write, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const bool joins = j == slot;
    const JoinedMean joined = JoinMean(a.mass[j]);
    decay[j] = joins ? joined.decay : 1.0f;
    write[j] = joins ? joined.write : 0.0f;
    if (joins) a.mass[j] = joined.members;
    bias[j] = EmptyBias(a, !(a.mass[j] > 0.0f));
  }
}

// Clustering (MATH 1.8.8): argmin |k - K~_j|^2, the first of equals.
size_t Nearest(const float* k, const float* keys, size_t key_dim, size_t slots) {
  size_t nearest = 0;
  double least = HUGE_VAL;
  for (size_t j = 0; j < slots; ++j) {
    double distance = 0.0;
    for (size_t x = 0; x < key_dim; ++x) {
      const double difference = static_cast<double>(k[x]) - keys[x * slots + j];
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      nearest = j;
    }
  }
  return nearest;
}

// ---- gates

// GSA (MATH 0.1): f = logsigmoid(x) / gate_normalizer, with logsigmoid(x) = min(x, 0) - log(1 + e^-|x|).
double LogDecay(const SlotControlArgs& a, size_t token, size_t slot) {
  const double x = a.logits[token * a.logit_stride + slot];
  return (std::fmin(x, 0.0) - std::log1p(std::exp(-std::fabs(x)))) / static_cast<double>(a.gate_normalizer);
}

// Luna (MATH 1.9.5): log2(1 + 2^x) = max(x, 0) + log2(1 + 2^-|x|).
double Softplus2(const SlotControlArgs& a, size_t token, size_t slot) {
  const double x = a.logits[token * a.logit_stride + slot];
  return std::fmax(x, 0.0) + std::log1p(std::exp2(-std::fabs(x))) / std::log(2.0);
}

}  // namespace

void LinformerStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<LinformerRow>(a, decay, write, bias);
}
bool LinformerChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<LinformerRow>(a, carry, gain, weight, bias);
}
void AssignedStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<AssignedRow>(a, decay, write, bias);
}
bool AssignedChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<AssignedRow>(a, carry, gain, weight, bias);
}
void GlobalStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<GlobalRow>(a, decay, write, bias);
}
bool GlobalChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<GlobalRow>(a, carry, gain, weight, bias);
}

void CompressiveMeanStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  JoinSlot(a, PooledSlot(a, 0), decay, write, bias);
}

// K~_t = (c_0 K~_0 + sum of the members k_i) / c_t: carry_t = c_0/c_t, gain_t = 1/c_t, weight_i = 1 for members.
bool CompressiveMeanChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double before = a.mass[j];
    double members = before;
    for (size_t t = 0; t < a.tokens; ++t) {
      const bool joins = PooledSlot(a, t) == j;
      if (joins) members += 1.0;
      carry[t * a.slots + j] = members > 0.0 ? static_cast<float>(before / members) : 1.0f;
      gain[t * a.slots + j] = members > 0.0 ? static_cast<float>(1.0 / members) : 0.0f;
      weight[t * a.slots + j] = joins ? 1.0f : 0.0f;
      bias[t * a.slots + j] = EmptyBias(a, !(members > 0.0));
    }
    a.mass[j] = static_cast<float>(std::fmin(members, kSlotMostMembers));
  }
  return true;
}

// The first n tokens open the slots.
void ClusteringStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  JoinSlot(a, a.tokens_seen < a.slots ? a.tokens_seen : Nearest(a.k, a.keys, a.key_dim, a.slots), decay, write, bias);
}

// Where a token goes depends on where the one before it went.
bool ClusteringChunk(const SlotControlArgs&, float*, float*, float*, float*) { return false; }

void NearestSlot(const NearestSlotArgs& a) {
  for (size_t t = 0; t < a.tokens; ++t) {
    a.index[t] = static_cast<int32_t>(Nearest(a.k + t * a.k_stride, a.keys, a.key_dim, a.slots));
  }
}

// a = e^f, b = 1 - e^f.
void GsaStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double f = LogDecay(a, 0, j);
    decay[j] = static_cast<float>(std::exp(f));
    write[j] = static_cast<float>(-std::expm1(f));
    bias[j] = 0.0f;
  }
}

// With F_t = f_0 + .. + f_t: carry_t = exp(F_t), and gain_t weight_i = exp(F_t - F_i) (1 - e^{f_i}), split at R half-way between
// the first F and the last: gain_t = exp(F_t - R), weight_i = (1 - e^{f_i}) exp(R - F_i), neither above exp(kSlotLogLimit / 2).
bool GsaChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double first = LogDecay(a, 0, j);
    double last = first;
    for (size_t t = 1; t < a.tokens; ++t) last += LogDecay(a, t, j);
    if (!(first - last <= static_cast<double>(kSlotLogLimit))) return false;
    double sum = 0.0;
    for (size_t t = 0; t < a.tokens; ++t) {
      const double f = LogDecay(a, t, j);
      sum += f;
      const double from_middle = sum - (first + last) / 2;
      carry[t * a.slots + j] = static_cast<float>(std::exp(sum));
      gain[t * a.slots + j] = static_cast<float>(std::exp(from_middle));
      weight[t * a.slots + j] = static_cast<float>(-std::expm1(f) * std::exp(-from_middle));
      bias[t * a.slots + j] = 0.0f;
    }
  }
  return true;
}

// a = t/(t+1), b = p/(t+1). t may have more than 24 bits, so the quotients are made in f64.
void LunaStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const double t = static_cast<double>(a.tokens_seen);
  for (size_t j = 0; j < a.slots; ++j) {
    decay[j] = static_cast<float>(t / (t + 1.0));
    write[j] = static_cast<float>(Softplus2(a, 0, j) / (t + 1.0));
    bias[j] = 0.0f;
  }
}

// The decays from token t_0 to token t multiply to t_0/(t+1).
bool LunaChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const double before = static_cast<double>(a.tokens_seen);
  for (size_t t = 0; t < a.tokens; ++t) {
    const double seen = before + static_cast<double>(t + 1);
    for (size_t j = 0; j < a.slots; ++j) {
      carry[t * a.slots + j] = static_cast<float>(before / seen);
      gain[t * a.slots + j] = static_cast<float>(1.0 / seen);
      weight[t * a.slots + j] = static_cast<float>(Softplus2(a, t, j));
      bias[t * a.slots + j] = 0.0f;
      if (std::isnan(weight[t * a.slots + j])) return false;
    }
  }
  return true;
}

}  // namespace tarn::reference
