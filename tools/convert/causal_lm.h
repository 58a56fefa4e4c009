// The graph of a causal language model: embeddings, blocks of attention and MLP, norm, head.
#ifndef TARN_TOOLS_CONVERT_CAUSAL_LM_H_
#define TARN_TOOLS_CONVERT_CAUSAL_LM_H_

#include "tools/convert/config.h"
#include "tools/convert/graph_builder.h"

namespace tarn::convert {

// Adds the whole program to an empty builder: input "tokens" (ids), output "logits".
// Errors: layers that disagree about the shape of a tensor that they share.
void BuildCausalLm(const ModelConfig& config, GraphBuilder* builder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CAUSAL_LM_H_
