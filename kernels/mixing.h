// Arguments of the kernels that mix rows elementwise (MATH 2.1).
#ifndef TARN_KERNELS_MIXING_H_
#define TARN_KERNELS_MIXING_H_

#include <cstddef>

namespace tarn {

// y = o + c v for each head, c of the head or of its products of q and k.
struct SkipArgs {
  size_t rows;
  size_t heads;      // H
  size_t value_dim;  // dv
  size_t key_dim;    // d; 0 where there are no products
  const float* o;    // [rows, H*dv], rows o_stride apart; likewise below
  size_t o_stride;
  const float* v;  // [rows, H*dv]
  size_t v_stride;
  const float* q;  // [rows, H*d], or nullptr
  size_t q_stride;
  const float* k;  // [rows, H*d], or nullptr
  size_t k_stride;
  const float* weight;  // [H], with q and k [H, d]
  float* y;             // [rows, H*dv]
  size_t y_stride;
};

// y = x + c (1 - sigmoid(logits)) (z - x), elementwise.
struct BlendArgs {
  size_t rows;
  size_t width;    // n
  const float* x;  // [rows, n], rows x_stride apart; likewise below
  size_t x_stride;
  const float* logits;
  size_t logits_stride;
  const float* z;  // nullptr: 0
  size_t z_stride;
  const float* weight;  // c [n]; nullptr: 1
  float* y;
  size_t y_stride;
};

}  // namespace tarn

#endif  // TARN_KERNELS_MIXING_H_
