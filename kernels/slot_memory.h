// Arguments of the kernels of slot memories (MATH F2):
//   K~ <- a*K~ + b x k,  V~ <- a*V~ + b x v,  o = V~^T softmax(scale * K~ q + bias)
#ifndef TARN_KERNELS_SLOT_MEMORY_H_
#define TARN_KERNELS_SLOT_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/stored.h"
#include "variants/slots.h"

namespace tarn {

// What the n slots of one key/value head keep and take is the business of a control (variants/slot_controls.h). t counts tokens
// from 0. What a control does not read may be null.
struct SlotControlArgs {
  size_t tokens;              // C; 1 in a step
  size_t slots;               // n
  uint64_t tokens_seen;       // before the first of them, since the reset
  SlotAttributes attributes;  // the model's
  const float* logits;        // [C, n], rows logit_stride apart
  size_t logit_stride;
  const float* schedule;  // [max_len, n]
  const int32_t* index;   // [C], index_stride apart; each in [0, n)
  size_t index_stride;
  const uint32_t* positions;  // [n], ascending
  const float* k;             // of a step: [d], the key of the token
  const float* keys;          // of a step: K~ [d, n]
  size_t key_dim;
  // [n] state, updated; nullptr where the control has none. abc_mlp: log-sum-exp of the logits (exp) or sum of the controls; else
  // members of the slot. With tokens_seen 0 it is all zeros and a log-sum-exp in it is to be ignored.
  float* mass;
};

// Step: decay a [n], write b [n], and bias [n]: 0, or -inf where a masked slot is empty (this token's own write counts).
using SlotControlStep = void (*)(const SlotControlArgs&, float* decay, float* write, float* bias);
// Chunk: K~_t = carry_t*K~_0 + gain_t * sum_{i<=t} weight_i x k_i for every token t of the chunk; carry, gain, weight, bias are [C,
// n]. Returns false, and changes nothing, where the control has no such form or where the factors would leave f32's
// range (gain or weight above exp(80)) or where a logit is NaN, which would reach the tokens before it: take steps then.
using SlotControlChunk = bool (*)(const SlotControlArgs&, float* carry, float* gain, float* weight, float* bias);

struct SlotStepArgs {
  size_t queries;    // G
  size_t slots;      // n
  size_t key_dim;    // d
  size_t value_dim;  // dv
  const float* q;    // [G, d], contiguous
  const float* k;    // [d]
  const float* v;    // [dv]
  const float* decay;
  const float* write;
  const float* bias;
  float scale;
  float* keys;     // K~ transposed: [d, n], so that the logits of all slots grow lane by lane
  float* values;   // V~ [n, dv]
  float* o;        // [G, dv], contiguous; 0 where every slot is masked
  float* scratch;  // [G, n]
  // [n] of V~, both or neither; nullptr: those of K~.
  const float* value_decay = nullptr;
  const float* value_write = nullptr;
};

// MATH 0.2 "F2" with factored controls: logits_t = scale * (carry_t*(Q K~_0^T)_t + gain_t * (tril(Q K^T) weight)_t) + bias_t, P =
// softmax, o = (P*carry) V~_0 + tril((P*gain) weight^T) V, and then K~, V~ move to the end of the chunk.
struct SlotChunkArgs {
  size_t tokens;
  size_t queries;
  size_t slots;
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of token t, query g at q + t*q_stride + g*d
  size_t q_stride;
  const float* k;  // [C, d], rows k_stride apart
  size_t k_stride;
  const float* v;  // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* carry;
  const float* gain;
  const float* weight;
  const float* bias;
  float scale;
  float* keys;
  float* values;
  float* o;
  size_t o_token_stride;
  float* scratch;  // SlotChunkScratch(...) elements
  // [C, n] of V~, all or none; nullptr: those of K~.
  const float* value_carry = nullptr;
  const float* value_gain = nullptr;
  const float* value_weight = nullptr;
};
uint64_t SlotChunkScratch(uint64_t tokens, uint64_t slots, uint64_t key_dim, uint64_t value_dim);

// Static slots (MATH 0.2 "Non-causal", 1.8): C tokens are added at once, nobody reads in between.
//   K~ <- carry*K~ + weight^T K,  V~ <- carry*V~ + weight^T V
// A key_dim or value_dim of 0 leaves the other one alone, so that each may have weights of its own.
struct SlotWriteArgs {
  size_t tokens;
  size_t slots;
  size_t key_dim;
  size_t value_dim;
  const float* k;  // [C, d], rows k_stride apart
  size_t k_stride;
  const float* v;  // [C, dv], rows v_stride apart
  size_t v_stride;
  const float* carry;   // [n]; nullptr: 1
  const float* weight;  // [C, n]
  float* keys;          // K~ [d, n]
  float* values;        // V~ [n, dv]
};

// What R rows of G query heads read from them: o = V~^T softmax(scale * K~ q + bias)
struct SlotReadArgs {
  size_t rows;     // R
  size_t queries;  // G
  size_t slots;
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of row r, query g at q + r*q_stride + g*d
  size_t q_stride;
  StoredRows keys;    // K~ [d, n], contiguous
  StoredRows values;  // V~ [n, dv], contiguous
  const float* bias;  // [n]: finite, or -inf where a slot takes no part; nullptr: 0
  float scale;
  float* o;  // o of row r, query g at o + r*o_stride + g*dv; 0 where every slot is masked
  size_t o_stride;
  float* scratch;  // [R, G, n]
};

// Which slot's mean key is nearest (MATH 1.8.8): index_t = argmin_j |k_t - K~_j|^2, the first of equals.
struct NearestSlotArgs {
  size_t tokens;
  size_t slots;
  size_t key_dim;
  const float* k;  // [C, d], rows k_stride apart
  size_t k_stride;
  const float* keys;  // K~ [d, n]
  int32_t* index;     // [C]
  float* scratch;     // [n]
};

}  // namespace tarn

#endif  // TARN_KERNELS_SLOT_MEMORY_H_
