// Blocks of the Set Transformer (Lee et al. 2019; MATH 1.9.4), as graphs of ordinary ops. Tensors are named as in the authors'
// code.
#ifndef TARN_TOOLS_CONVERT_BUILD_SET_TRANSFORMER_H_
#define TARN_TOOLS_CONVERT_BUILD_SET_TRANSFORMER_H_

#include <string>

#include "tools/convert/build/graph_builder.h"

namespace tarn::convert {

// Of a block.
struct SetBlock {
  uint32_t width;  // of its output
  uint32_t num_heads;
  bool layer_norm;
  float ln_eps;
  uint32_t max_rows;  // of a set; a larger one is an error
};

// MAB(x, y): with Q = fc_q x, K = fc_k y, V = fc_v y, O = Q + softmax(Q K^T / sqrt(width)) V head by head; ln0; O + relu(fc_o O);
// ln1. `prefix` ("mab0.") stands before the tensors, and before the names of the ops.
format::Slice AddMab(GraphBuilder* builder, const std::string& prefix, const SetBlock& block, format::Slice x, format::Slice y);

// ISAB(x) = MAB(x, h), h = MAB(I, x) with `num_inducing` learned rows I. Sets `*induced` to h.
format::Slice AddIsab(GraphBuilder* builder, const std::string& prefix, const SetBlock& block, uint32_t num_inducing,
                      format::Slice x, format::Slice* induced);

// PMA(x) = MAB(S, x) with `num_seeds` learned rows S.
format::Slice AddPma(GraphBuilder* builder, const std::string& prefix, const SetBlock& block, uint32_t num_seeds, format::Slice x);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_SET_TRANSFORMER_H_
