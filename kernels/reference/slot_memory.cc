// Slot memory (MATH F2). The chunk is the factored formula, written out: it does not call the step.
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

// logits -> probabilities, in place; all 0 where every logit is -inf, all NaN where one is NaN.
void Softmax(float* p, size_t n) {
  double top = -HUGE_VAL;
  for (size_t j = 0; j < n; ++j) top = std::fmax(top, static_cast<double>(p[j]));
  double sum = 0.0;
  const double shift = top == -HUGE_VAL ? 0.0 : top;  // -inf must not meet -inf
  for (size_t j = 0; j < n; ++j) sum += std::exp(p[j] - shift);
  for (size_t j = 0; j < n; ++j) p[j] = sum == 0.0 ? 0.0f : static_cast<float>(std::exp(p[j] - shift) / sum);
}

// o = V~^T softmax(scale K~ q + bias) for one query; `p` [n] is scratch, a bias of nullptr 0.
void ReadSlots(const float* q, size_t slots, size_t key_dim, size_t value_dim, const StoredRows& keys, const StoredRows& values,
               const float* bias, float scale, float* p, float* o) {
  for (size_t j = 0; j < slots; ++j) {
    double sum = 0.0;
    for (size_t x = 0; x < key_dim; ++x) sum += static_cast<double>(q[x]) * At(keys, slots, x, j);
    p[j] = static_cast<float>(static_cast<double>(scale) * sum) + (bias == nullptr ? 0.0f : bias[j]);
  }
  Softmax(p, slots);
  for (size_t e = 0; e < value_dim; ++e) {
    double sum = 0.0;
    for (size_t j = 0; j < slots; ++j) sum += static_cast<double>(p[j]) * At(values, value_dim, j, e);
    o[e] = static_cast<float>(sum);
  }
}

// o of token t, query g. `qk` [C] and `p` [n] are scratch.
void ReadRow(const SlotChunkArgs& a, size_t t, size_t g, float* qk, float* p) {
  const float* q = a.q + t * a.q_stride + g * a.key_dim;
  const float* carry = a.carry + t * a.slots;
  const float* gain = a.gain + t * a.slots;
  for (size_t i = 0; i <= t; ++i) {
    double sum = 0.0;
    for (size_t x = 0; x < a.key_dim; ++x) sum += static_cast<double>(q[x]) * a.k[i * a.k_stride + x];
    qk[i] = static_cast<float>(sum);
  }
  for (size_t j = 0; j < a.slots; ++j) {
    double old = 0.0, written = 0.0;
    for (size_t x = 0; x < a.key_dim; ++x) old += static_cast<double>(q[x]) * a.keys[x * a.slots + j];
    for (size_t i = 0; i <= t; ++i) written += static_cast<double>(qk[i]) * a.weight[i * a.slots + j];
    p[j] = static_cast<float>(static_cast<double>(a.scale) * (carry[j] * old + gain[j] * written)) + a.bias[t * a.slots + j];
  }
  Softmax(p, a.slots);
  const bool own = a.value_carry != nullptr;
  carry = own ? a.value_carry + t * a.slots : carry;
  gain = own ? a.value_gain + t * a.slots : gain;
  const float* weight = own ? a.value_weight : a.weight;
  float* read = qk;  // [t + 1]: sum over slots of p gain_t weight_i, the share of each token of the chunk
  for (size_t i = 0; i <= t; ++i) {
    double sum = 0.0;
    for (size_t j = 0; j < a.slots; ++j) sum += static_cast<double>(p[j]) * gain[j] * weight[i * a.slots + j];
    read[i] = static_cast<float>(sum);
  }
  float* o = a.o + t * a.o_token_stride + g * a.value_dim;
  for (size_t e = 0; e < a.value_dim; ++e) {
    double sum = 0.0;
    for (size_t j = 0; j < a.slots; ++j) sum += static_cast<double>(p[j]) * carry[j] * a.values[j * a.value_dim + e];
    for (size_t i = 0; i <= t; ++i) sum += static_cast<double>(read[i]) * a.v[i * a.v_stride + e];
    o[e] = static_cast<float>(sum);
  }
}

}  // namespace

// K~ <- a*K~ + b x k, V~ <- a*V~ + b x v, o = V~^T softmax(scale K~ q + bias) (ABC eq. 4-5). V~ may have a and b of its own.
void SlotStep(const SlotStepArgs& a) {
  const bool own = a.value_decay != nullptr;
  for (size_t j = 0; j < a.slots; ++j) {
    double decay = static_cast<double>(a.decay[j]);
    double write = static_cast<double>(a.write[j]);
    for (size_t x = 0; x < a.key_dim; ++x) {
      float& cell = a.keys[x * a.slots + j];
      cell = static_cast<float>(decay * cell + write * a.k[x]);
    }
    if (own) {
      decay = static_cast<double>(a.value_decay[j]);
      write = static_cast<double>(a.value_write[j]);
    }
    for (size_t e = 0; e < a.value_dim; ++e) {
      float& cell = a.values[j * a.value_dim + e];
      cell = static_cast<float>(decay * cell + write * a.v[e]);
    }
  }
  for (size_t g = 0; g < a.queries; ++g) {
    ReadSlots(a.q + g * a.key_dim, a.slots, a.key_dim, a.value_dim, a.keys, a.values, a.bias, a.scale, a.scratch + g * a.slots,
              a.o + g * a.value_dim);
  }
}

void SlotChunk(const SlotChunkArgs& a) {
  for (size_t t = 0; t < a.tokens; ++t) {
    for (size_t g = 0; g < a.queries; ++g) ReadRow(a, t, g, a.scratch, a.scratch + a.tokens);
  }
  const size_t last = (a.tokens - 1) * a.slots;
  const float *carry = a.carry + last, *gain = a.gain + last, *weight = a.weight;
  for (size_t j = 0; j < a.slots; ++j) {
    for (size_t x = 0; x < a.key_dim; ++x) {
      float& cell = a.keys[x * a.slots + j];
      double sum = 0.0;
      for (size_t i = 0; i < a.tokens; ++i) sum += static_cast<double>(weight[i * a.slots + j]) * a.k[i * a.k_stride + x];
      cell = static_cast<float>(static_cast<double>(carry[j]) * cell + gain[j] * sum);
    }
  }
  if (a.value_carry != nullptr) carry = a.value_carry + last, gain = a.value_gain + last, weight = a.value_weight;
  for (size_t j = 0; j < a.slots; ++j) {
    for (size_t e = 0; e < a.value_dim; ++e) {
      float& cell = a.values[j * a.value_dim + e];
      double sum = 0.0;
      for (size_t i = 0; i < a.tokens; ++i) sum += static_cast<double>(weight[i * a.slots + j]) * a.v[i * a.v_stride + e];
      cell = static_cast<float>(static_cast<double>(carry[j]) * cell + gain[j] * sum);
    }
  }
}

// ABC eq. 4: K~ <- carry*K~ + sum_i weight_i x k_i, V~ likewise.
void SlotWrite(const SlotWriteArgs& a) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double carry = a.carry == nullptr ? 1.0 : static_cast<double>(a.carry[j]);
    for (size_t x = 0; x < a.key_dim; ++x) {
      float& cell = a.keys[x * a.slots + j];
      double sum = carry * cell;
      for (size_t i = 0; i < a.tokens; ++i) sum += static_cast<double>(a.weight[i * a.slots + j]) * a.k[i * a.k_stride + x];
      cell = static_cast<float>(sum);
    }
    for (size_t e = 0; e < a.value_dim; ++e) {
      float& cell = a.values[j * a.value_dim + e];
      double sum = carry * cell;
      for (size_t i = 0; i < a.tokens; ++i) sum += static_cast<double>(a.weight[i * a.slots + j]) * a.v[i * a.v_stride + e];
      cell = static_cast<float>(sum);
    }
  }
}

void SlotRead(const SlotReadArgs& a) {
  for (size_t row = 0; row < a.rows; ++row) {
    for (size_t g = 0; g < a.queries; ++g) {
      ReadSlots(a.q + row * a.q_stride + g * a.key_dim, a.slots, a.key_dim, a.value_dim, a.keys, a.values, a.bias, a.scale,
                a.scratch + (row * a.queries + g) * a.slots, a.o + row * a.o_stride + g * a.value_dim);
    }
  }
}

}  // namespace tarn::reference
