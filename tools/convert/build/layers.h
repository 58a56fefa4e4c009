// Pieces that graphs of several ops are made of.
#ifndef TARN_TOOLS_CONVERT_BUILD_LAYERS_H_
#define TARN_TOOLS_CONVERT_BUILD_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/attention/cache_attention.h"
#include "tools/convert/build/graph_builder.h"

namespace tarn::convert {

format::Slice AddSum(GraphBuilder* builder, const std::string& name, format::Slice a, format::Slice b);
// `cap`: of SoftCap.
format::Slice AddActivation(GraphBuilder* builder, const std::string& name, format::ActivationKind kind, format::Slice x,
                            float cap = 0);
// f(gate) * up
format::Slice AddGated(GraphBuilder* builder, const std::string& name, format::ActivationKind kind, format::Slice gate,
                       format::Slice up);
// `tensor`: its name, without ".weight"
// `group`: columns that are normed together, 0: all. They share their weights.
format::Slice AddNorm(GraphBuilder* builder, const std::string& name, const std::string& tensor, format::NormKind kind, float eps,
                      format::Slice x, uint32_t group = 0);

// A norm of every `group` columns by themselves, each column with weights of its own.
format::Slice AddGroupNorm(GraphBuilder* builder, const std::string& name, const std::string& tensor, format::NormKind kind,
                           float eps, format::Slice x, uint32_t group);

// Columns of the weight [columns, 1, taps] of a convolution and, where it has one, of its bias.
struct ConvColumns {
  std::string name;  // in the checkpoint, without ".weight"
  uint32_t width;
};
struct Convolution {
  uint32_t taps;
  bool bias, silu;
};
// Every column of x convolved with its own taps. `tensor`: the weight of all columns in the file, without ".weight".
format::Slice AddCausalConv(GraphBuilder* builder, const std::string& name, const std::string& tensor,
                            const std::vector<ConvColumns>& parts, const Convolution& convolution, format::Slice x);

// x_t + mu (x_(t-1) - x_t) for each of `tensors`, the names of a mu [n] each, side by side. `tensor`: the name of all in the file.
format::Slice AddTokenShift(GraphBuilder* builder, const std::string& name, const std::string& tensor,
                            const std::vector<std::string>& tensors, format::Slice x);

// x + (1 - sigmoid(logits)) (z - x).
format::Slice AddBlend(GraphBuilder* builder, const std::string& name, format::Slice x, format::Slice logits, format::Slice z);
// x (1 - c (1 - sigmoid(logits))); `tensor`: the name of c.
format::Slice AddDamping(GraphBuilder* builder, const std::string& name, const std::string& tensor, format::Slice x,
                         format::Slice logits);

// o + c v for each head, c a weight of the head, or its products of q and k. `tensor`: the name of the weights.
format::Slice AddSkip(GraphBuilder* builder, const std::string& name, const std::string& tensor, const format::Heads& heads,
                      format::Slice o, format::Slice v);
format::Slice AddProductSkip(GraphBuilder* builder, const std::string& name, const std::string& tensor, const format::Heads& heads,
                             format::Slice o, format::Slice v, format::Slice q, format::Slice k);

// width / heads logits of each of `heads` parts of x, by one matrix [width / heads, columns of a part] for all. `tensor`: its name,
// without ".weight".
format::Slice AddHeadLogits(GraphBuilder* builder, const std::string& name, const std::string& tensor, const LogitInput& logit,
                            format::Slice x);

// Rows of a tensor [rows, width], the same for every sequence: inducing points, seeds, a pack.
format::Slice AddRows(GraphBuilder* builder, const std::string& name, const std::string& tensor, uint32_t rows, uint32_t width);

// Softmax attention of q to all keys that the policy of `cache` lets it see. `system`: the name for people.
format::Slice AddNoncausalAttention(GraphBuilder* builder, const std::string& name, const std::string& system,
                                    const format::Heads& heads, const CacheAttention& cache, format::Slice q, format::Slice k,
                                    format::Slice v);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_LAYERS_H_
