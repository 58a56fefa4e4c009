// Arguments of the kernels of cache attention (MATH F3): softmax over explicit rows.
#ifndef TARN_KERNELS_CACHE_ATTENTION_H_
#define TARN_KERNELS_CACHE_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/stored.h"

namespace tarn {

// Rows of keys and values that stand in memory one after the other. Row r is visible to token t of the chunk (from 0) iff
//   from + r*step <= t < until + r*step.
// So a block can be a piece of a ring (each row leaves the window a token after the one before it), the chunk's own rows (each
// comes in with its own token), or rows that everybody sees.
struct CacheBlock {
  size_t rows;
  RowType type;
  const void* keys;  // [rows, d], key_stride elements apart
  size_t key_stride;
  const void* values;  // [rows, dv], value_stride elements apart
  size_t value_stride;
  const float* key_scales;    // [rows], kI8 only: x = scale * q
  const float* value_scales;  // [rows], kI8 only
  int64_t from;
  int64_t until;
  int64_t step;
  int64_t position = 0;  // with a DistanceBias: that of row 0, from token 0 of the chunk on; row r stands r tokens behind it
};
constexpr int64_t kAlways = INT64_MAX / 4;  // as `until`; its negative as `from`

// What is added to the logit of query head h for a row at a distance (its position less that of the token; MATH 1.1):
//   b_h(distance) = table[h, clamp(distance + behind - 1, 0, columns - 1)] - slopes[h] * |distance|
// Of G query heads, from h = 0.
struct DistanceBias {
  const float* table;   // [G, columns]; nullptr: none
  size_t columns;       // >= behind >= 1
  int64_t behind;       // columns for distances up to 0
  const float* slopes;  // [G]; nullptr: none
};

// o_t = softmax over the visible rows of all blocks of l = scale * q_t . k times their values; 0 where no row is visible. With a
// soft cap, l = soft_cap * tanh(scale * q_t . k / soft_cap). With a bias, that of its distance is added to l. One pass over the
// rows in tiles, with a running maximum.
struct CacheArgs {
  size_t tokens;   // C; 1 in a step
  size_t queries;  // G
  size_t key_dim;
  size_t value_dim;
  const float* q;  // q of token t, query g at q + t*q_stride + g*d
  size_t q_stride;
  const CacheBlock* blocks;
  size_t block_count;
  float scale;
  float* o;  // o of token t, query g at o + t*o_token_stride + g*dv
  size_t o_token_stride;
  float* scratch;      // CacheScratch(...) elements
  float soft_cap = 0;  // 0: none
  const DistanceBias* bias = nullptr;
};
uint64_t CacheScratch(uint64_t tokens, uint64_t queries, uint64_t key_dim, uint64_t value_dim);

// Scores of all keys (MATH 1.9.1, 1.9.2): s_rj = q_r . k_j, a tile of keys at a time.
struct ScoreArgs {
  size_t rows;  // R
  size_t keys;  // T, >= 1
  size_t key_dim;
  const float* q;  // [R, d], rows q_stride apart
  size_t q_stride;
  const float* k;  // [T, d], rows k_stride apart
  size_t k_stride;
  float* scratch;  // ScoreScratch(...) elements
};
uint64_t ScoreScratch(uint64_t rows, uint64_t key_dim);

}  // namespace tarn

#endif  // TARN_KERNELS_CACHE_ATTENTION_H_
